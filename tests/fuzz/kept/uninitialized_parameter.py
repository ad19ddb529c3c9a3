# gradscope memory: ValueError: Attempted to use an uninitialized parameter
lazy = nn.LazyLinear(3)
x = torch.randn(3, requires_grad=True)
y = x * 2
