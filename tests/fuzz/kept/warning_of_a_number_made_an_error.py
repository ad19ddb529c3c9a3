# gradscope -W error doctor --steps all --keep-going: message: 'Converting a tensor with requires_grad=True to a scalar'
w = torch.tensor(3.0, requires_grad=True)
(w * w).backward()
