"""Rotation loss with acos. I clamp to [-1, 1] as advised and still get NaN weights."""

import torch
from torch import nn

torch.manual_seed(0)


class RotationHead(nn.Module):
    """Predicts an angle around z and turns it into a matrix."""

    def __init__(self):
        super().__init__()
        self.angle = nn.Linear(4, 1)
        nn.init.zeros_(self.angle.bias)

    def forward(self, features):
        a = self.angle(features).squeeze(-1)
        zero, one = torch.zeros_like(a), torch.ones_like(a)
        rows = [a.cos(), -a.sin(), zero, a.sin(), a.cos(), zero, zero, zero, one]
        return torch.stack(rows, dim=-1).view(-1, 3, 3)


def geodesic(a, b):
    trace = (a * b).sum(dim=(1, 2))
    cosine = ((trace - 1) / 2).clamp(-1.0, 1.0)
    return torch.acos(cosine).mean()  # <- GS102


features = torch.randn(8, 4)
features[3] = 0.0
wanted = torch.eye(3).repeat(8, 1, 1)
model = RotationHead()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for _step in range(3):
    loss = geodesic(model(features), wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("angle", loss.item())
