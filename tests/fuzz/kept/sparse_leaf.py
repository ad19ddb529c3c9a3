# gradscope check --root s: NotImplementedError: Could not run 'aten::view' with arguments from the 'SparseCPU' backend
s = torch.sparse_coo_tensor([[0, 2]], [1.0, 2.0], (4,), requires_grad=True)
