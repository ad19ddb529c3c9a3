# gradscope explain --jacobian: status: '0 became 4' (seed 155615-111)
# gradscope explain --jacobian: status: '0 became 4' (seed 155615-111)
n6 = torch.nested.nested_tensor([torch.randn(2), torch.randn(3)], requires_grad=True)
torch.nested.to_padded_tensor(n6, 0.0).sum().backward()
