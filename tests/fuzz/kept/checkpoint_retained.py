# gradscope doctor --steps all --keep-going: the checkpointed module runs once more
net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 3))
y = checkpoint(net, torch.randn(2, 3, requires_grad=True), use_reentrant=False)
y.abs().sum().backward(retain_graph=True)
print(net[1].running_mean, net[1].num_batches_tracked)
