# gradscope explain: explanation.steps[2].constants[0][1]: expected `float | str`, got `null`
x = torch.randn(4, requires_grad=True)
y = x.norm(float("inf"))
