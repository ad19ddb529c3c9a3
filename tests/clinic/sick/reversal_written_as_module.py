"""Domain adaptation that does the opposite: the features tell the domain ever better."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class ReverseGradient(nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.weight = weight

    def forward(self, x):
        return x.clone()

    def backward(self, grad_output):  # <- GS411
        return grad_output.neg() * self.weight


class DomainNet(nn.Module):
    def __init__(self, inputs=6, hidden=16, classes=3):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(inputs, hidden), nn.Tanh(), nn.Linear(hidden, 8))
        self.classify = nn.Linear(8, classes)
        self.domain = nn.Sequential(ReverseGradient(0.3), nn.Linear(8, 2))

    def forward(self, x):
        h = torch.tanh(self.features(x))
        return self.classify(h), self.domain(h)


centers = torch.randn(3, 6)
shift = torch.randn(6)
model = DomainNet()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for step in range(12):
    label, side = torch.randint(3, (32,)), torch.randint(2, (32,))
    x = centers[label] + side.unsqueeze(1) * shift + 0.4 * torch.randn(32, 6)
    classes, domains = model(x)
    source = side == 0
    task = F.cross_entropy(classes[source], label[source])
    adversary = F.cross_entropy(domains, side)
    optimizer.zero_grad()
    (task + adversary).backward()
    optimizer.step()
    print(step, task.item(), adversary.item())
