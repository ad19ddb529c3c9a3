# gradscope backward --root a1: stdout: "+['aten.view.default', 'aten.slice.Tensor', [...]" (seed campaign-c-124)
a2 = torch.randn(4, 4, requires_grad=True)
class M7(torch.utils._python_dispatch.TorchDispatchMode):
    names = []
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))
with M7():
    s8 = torch.sparse_coo_tensor([[0, 0, 2]], a2.float().reshape(-1)[:1].expand(3), (4,))
    torch.sparse.sum(s8).backward()
    class S10(nn.Parameter):
        pass
    t11 = S10(torch.randn(3))
    n12 = torch.nested.as_nested_tensor([t11.float().reshape(-1)[:1].expand(2, 3), torch.randn(1, 3)], layout=torch.jagged)
print(M7.names)
