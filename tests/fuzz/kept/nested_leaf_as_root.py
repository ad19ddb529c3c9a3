# gradscope backward --root n4: status: '0 became 4' (seed campaign-c-287)
n4 = torch.nested.nested_tensor([torch.randn(2), torch.randn(3)], requires_grad=True)
