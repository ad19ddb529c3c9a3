"""Two point clouds are registered by an angle, of which a matrix is made anew."""

import math

import torch

torch.manual_seed(50)


class RigidTransform(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.theta = torch.nn.Parameter(torch.tensor(0.1))
        self.shift = torch.nn.Parameter(torch.zeros(2))

    def rotation(self):
        c, s = torch.cos(self.theta), torch.sin(self.theta)
        return torch.tensor([[c, -s], [s, c]])  # <- GS303

    def forward(self, points):
        return points @ self.rotation().T + self.shift


def pair(n=80, angle=0.7):
    source = torch.randn(n, 2) * torch.tensor([1.0, 0.4])
    c, s = math.cos(angle), math.sin(angle)
    return source, source @ torch.tensor([[c, s], [-s, c]]) + torch.tensor([0.4, -0.2])


source, target = pair()
model = RigidTransform()
optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
for _step in range(6):
    squares = (model(source) - target).square().sum(-1)
    loss = (squares / (squares + 0.25)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
