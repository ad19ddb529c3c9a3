# gradscope backward --root a2 --gradient ones: message: 'gradscope: internal error: RuntimeError: Boolean value [...]' (seed campaign-d-274)
a2 = torch.randn(2, 3, 2, requires_grad=True)
s4 = torch.autograd.functional.vhp(lambda t: (t ** 3).sum(), torch.ones(2), torch.ones(()))
