"""A homography is regressed; the parameters never move."""

import torch
import torch.nn as nn
from warp import HomographyWarper


class MyModel(nn.Module):
    def __init__(self, template, nearest=True):
        super().__init__()
        self.resnet = nn.Sequential(
            nn.Conv2d(1, 8, 3, 2, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()
        )
        self.register_buffer("template", template)
        self.warper = HomographyWarper(16, 16, mode="nearest" if nearest else "bilinear")
        self.reg = nn.Sequential(nn.Linear(8, 32), nn.ReLU(True), nn.Linear(32, 6))
        self.reg[-1].weight.data.mul_(0.01)
        self.reg[-1].bias.data.copy_(torch.tensor([1, 0, 0, 0, 1, 0], dtype=torch.float))

    def forward(self, x):
        theta = self.reg(self.resnet(x)).view(-1, 2, 3)
        return self.warper(self.template.expand(len(x), -1, -1, -1), theta)


torch.manual_seed(0)
model = MyModel(torch.rand(1, 1, 16, 16))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for _ in range(3):
    frames = torch.rand(4, 1, 16, 16)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(frames), frames)
    loss.backward()
    optimizer.step()
