# gradscope doctor --steps all --keep-going: AttributeError: 'NoneType' object has no attribute 'next_functions'
out, pull = torch.func.vjp(lambda t: t.sin(), torch.ones(3))
pulled = pull(torch.ones(3))
