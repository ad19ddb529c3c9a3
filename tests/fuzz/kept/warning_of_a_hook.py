# gradscope backward: a warning is shown at a line of torch
net = nn.Linear(3, 2)
net.register_full_backward_pre_hook(lambda m, o: None)
net(torch.randn(2, 3)).sum().backward()
