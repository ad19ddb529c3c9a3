# gradscope explain: ValueError: ge: relation is indeterminate
n = torch.nested.nested_tensor([torch.randn(2, 3), torch.randn(1, 3)], layout=torch.jagged, requires_grad=True)
y = n.unbind()[0] * 2
