"""The topology-like term of my loss has no effect: results are the same with weight 0 and 10."""

import numpy as np
import torch
from torch import nn

torch.manual_seed(0)


def contrast_loss(image):
    array = image.detach().cpu().numpy()  # <- GS303
    low, high = np.percentile(array, 10), np.percentile(array, 90)
    return torch.tensor(1.0) - torch.tensor(high - low)


class Painter(nn.Module):
    def __init__(self):
        super().__init__()
        self.shape = nn.Linear(4, 64)
        self.contrast = nn.Linear(4, 64)

    def forward(self, z):
        return torch.sigmoid(self.shape(z)), torch.sigmoid(self.contrast(z))


z = torch.randn(10, 4)
image = torch.rand(10, 64)
model = Painter()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(3):
    painted, glow = model(z)
    loss = nn.functional.mse_loss(painted, image) + 10 * contrast_loss(glow)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, float(loss))
