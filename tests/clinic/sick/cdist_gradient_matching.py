"""Match the gradient of a learned potential over pairwise distances to reference forces."""

import torch
from torch import nn

torch.manual_seed(0)


class PairNet(nn.Module):
    def __init__(self, landmarks=5):
        super().__init__()
        self.landmarks = nn.Parameter(torch.randn(landmarks, 2))
        self.readout = nn.Linear(landmarks, 1)

    def forward(self, positions):
        distances = torch.cdist(positions, self.landmarks)  # <- GS410
        return self.readout(torch.exp(-distances)).sum()


def gradient_of(net, positions):
    value = net(positions)
    (gradient,) = torch.autograd.grad(value, positions, create_graph=True)
    return gradient


net = PairNet()
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
reference = torch.randn(8, 2)
for _ in range(2):
    positions = torch.randn(8, 2, requires_grad=True)
    loss = nn.MSELoss()(gradient_of(net, positions), reference)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
