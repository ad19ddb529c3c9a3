"""Healed. The logarithm never sees a 0."""

import torch
import torch.nn as nn
import torch.nn.functional as F


def distance_transform(image, kernel_size=3, h=0.35):
    """Convolutional distance transform (Pham et al.)."""
    n_iters = 3
    grid = torch.stack(
        torch.meshgrid(*[torch.arange(kernel_size) - kernel_size // 2] * 2, indexing="ij")
    )
    kernel = torch.exp(torch.hypot(grid[0].float(), grid[1].float()) / -h)[None, None]
    out = torch.zeros_like(image)
    boundary = image.clone()
    signal_ones = torch.ones_like(boundary)
    for i in range(n_iters):
        cdt = F.conv2d(boundary, kernel, padding=kernel_size // 2)
        cdt = -h * torch.log(cdt.clamp(min=1e-6))
        cdt = torch.nan_to_num(cdt, nan=0.0, posinf=0.0, neginf=0.0)
        mask = torch.where(cdt > 0, 1.0, 0.0)
        if mask.sum() == 0:
            break
        offset = i * kernel_size / 2
        out = out + (offset + cdt) * mask
        boundary = torch.where(mask == 1, signal_ones, boundary)
    return out


class Seg(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = nn.Conv2d(3, 1, 3, padding=1)
        roi = torch.zeros(1, 1, 24, 24)
        roi[..., 2:-2, 2:-2] = 1
        self.register_buffer("roi", roi)

    def forward(self, x):
        return F.relu(torch.tanh(self.c(x)) - 0.9) * self.roi


torch.manual_seed(4)
seg = Seg()
opt = torch.optim.Adam(seg.parameters())
x = torch.randn(2, 3, 24, 24)
target = torch.zeros(2, 1, 24, 24)
target[:, :, 8:16, 8:16] = 1
for _ in range(2):
    pred = seg(x)
    loss = (distance_transform(pred) * target).mean() + F.mse_loss(pred, target)
    opt.zero_grad()
    loss.backward()
    opt.step()
