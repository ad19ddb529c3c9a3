# gradscope memory: status: '0 became 4' (seed campaign-g-4882)
a3 = torch.randn(5, requires_grad=True)
from torch import sin, cos
y4 = sin(a3) * cos(a3)
y9 = y4[y4.abs() > 0]
y11 = y9 * 2
t12 = threading.Thread(target=lambda: y11.abs().sum().backward())
t12.start()
t12.join()
