# gradscope trace: TypeError instead of python's own error, after gc.freeze()
from tests.fuzz.fingerprint import tell_at_exit
gc.collect(); gc.freeze()
a3 = torch.randn(4, requires_grad=True)
try:
    torch.autograd.backward([torch.zeros(4).abs().sum(), (a3 * 1).abs().mean()])
except Exception as error:
    print(type(error).__name__, str(error)[:80])
