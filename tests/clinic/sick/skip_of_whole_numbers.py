"""A skip connection is cast to integers before it is joined with the way back up."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)


class SmallUNet(nn.Module):
    def __init__(self, channels=6):
        super().__init__()
        self.down = nn.Conv2d(1, channels, 3, padding=1)
        self.deep = nn.Conv2d(channels, channels, 3, padding=1)
        self.up = nn.Conv2d(2 * channels, 1, 3, padding=1)

    def forward(self, image):
        wide = F.relu(self.down(image))
        deep = F.relu(self.deep(F.avg_pool2d(wide, 2)))
        deep = F.interpolate(deep, scale_factor=2)
        return self.up(torch.cat([deep, wide.int()], dim=1))  # <- GS311


model = SmallUNet()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for _ in range(4):
    image = torch.rand(4, 1, 8, 8)
    mask = (image > 0.5).float()
    loss = F.binary_cross_entropy_with_logits(model(image), mask)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
