# gradscope doctor --steps all --keep-going: RuntimeError: _apply(): Couldn't swap Linear.weight
torch.__future__.set_swap_module_params_on_conversion(True)
net = nn.Linear(3, 1).double()
net(torch.ones(1, 3, dtype=torch.float64)).sum().backward()
