"""A Hessian-vector product: the gradient argument of a second backward is the vector.

g = dloss/dw is a tensor with a history. g.backward(v) computes v times its Jacobian, which is the
Hessian of loss, without ever building that matrix. For loss = w0**2 * w1 the Hessian is
[[2*w1, 2*w0], [2*w0, 0]], at w = [3, 2] that is [[4, 6], [6, 0]], and v = [1, 0] picks its first
row.

Try:
    gradscope backward examples/hessian_vector.py --call 2
    gradscope explain examples/hessian_vector.py --call 2
    gradscope explain examples/hessian_vector.py --create-graph w --gradient "[0, 1]" --jacobian
"""

import torch

w = torch.tensor([3.0, 2.0], requires_grad=True)
loss = (w**2)[0] * w[1]

g = torch.autograd.grad(loss, w, create_graph=True)[0]
g.backward(torch.tensor([1.0, 0.0]))

print("loss =", loss.item())
print("g    =", g.tolist())
print("H v  =", w.grad.tolist())
