# gradscope backward: the patch is called twice
original = torch.Tensor.backward
def patched(self, *args, **kwargs):
    print("patched")
    return original(self, *args, **kwargs)
torch.Tensor.backward = patched
x = torch.ones(3, requires_grad=True)
(x * 2).sum().backward()
torch.Tensor.backward = original
