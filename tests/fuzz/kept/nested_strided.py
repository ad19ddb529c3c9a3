# gradscope backward: graph.leaves[0].tensor: shape [2, -1] has a negative size
n = torch.nested.nested_tensor([torch.randn(2), torch.randn(3)], requires_grad=True)
torch.nested.to_padded_tensor(n * 2, 0.0).sum().backward()
