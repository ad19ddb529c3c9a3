# gradscope doctor --steps all --keep-going --check: stdout: '+unpack' (seed campaign-g-669)
import torch.nn.utils.parametrizations
a1 = torch.tensor(0.5, requires_grad=True)
with torch.autograd.graph.saved_tensors_hooks(lambda t: (print("pack"), t)[1], lambda t: (print("unpack"), t)[1]):
    y2 = a1 * a1
