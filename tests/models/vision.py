"""Images changed and compared by kornia, inside a graph."""

from __future__ import annotations

_DATA = """
import kornia
import torch
from torch import nn
torch.manual_seed(0)
images = torch.rand(2, 3, 12, 12, requires_grad=True)
"""

_BODIES = {
    "colours": """
h = kornia.color.rgb_to_hsv(kornia.color.ycbcr_to_rgb(kornia.color.rgb_to_ycbcr(images)))
loss = kornia.color.rgb_to_lab(images).mean() + h.square().mean()
""",
    "filters": """
blurred = kornia.filters.gaussian_blur2d(images, (3, 3), (1.0, 1.0))
edges = kornia.filters.sobel(blurred)
loss = edges.mean() + kornia.filters.laplacian(images, 3).abs().mean()
loss = loss + kornia.filters.median_blur(images, 3).square().mean()
""",
    "registration by a homography": """
target = torch.rand(2, 3, 12, 12)
moved = nn.Parameter(torch.eye(3).repeat(2, 1, 1) + 0.01 * torch.randn(2, 3, 3))
seen = kornia.geometry.homography_warp(images, moved, (12, 12), align_corners=True)
loss = nn.functional.l1_loss(seen, target)
""",
    "turned and scaled": """
angle, scale = nn.Parameter(torch.tensor([10.0, -20.0])), nn.Parameter(torch.ones(2, 2))
center = torch.full((2, 2), 5.5)
turn = kornia.geometry.get_rotation_matrix2d(center, angle, scale)
loss = kornia.geometry.warp_affine(images, turn, (12, 12)).square().mean()
""",
    "likeness of images": """
net = nn.Conv2d(3, 3, 3, padding=1)
loss = kornia.losses.ssim_loss(net(images), images.detach(), 5)
loss = loss + 0.01 * kornia.losses.total_variation(images).mean()
loss = loss + kornia.losses.charbonnier_loss(net(images), images, reduction="mean")
""",
    "segmentation": """
net = nn.Conv2d(3, 4, 3, padding=1)
labels = torch.randint(4, (2, 12, 12))
out = net(images)
loss = kornia.losses.dice_loss(out, labels) + kornia.losses.tversky_loss(out, labels, 0.4, 0.6)
loss = loss + kornia.losses.focal_loss(out, labels, alpha=0.5, reduction="mean")
""",
    "augmented on the way": """
changes = kornia.augmentation.AugmentationSequential(
    kornia.augmentation.RandomAffine(20.0, p=1.0), kornia.augmentation.ColorJitter(0.1, 0.1, p=1.0),
    kornia.augmentation.RandomHorizontalFlip(p=0.5), data_keys=["input"],
)
net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
loss = nn.functional.cross_entropy(net(changes(images)), torch.tensor([0, 3]))
""",
    "changed shape and brightness": """
strength = nn.Parameter(torch.tensor([0.1, 0.3]))
h = kornia.enhance.adjust_gamma(images, 1 + strength)
h = kornia.enhance.adjust_contrast(h, 1 - strength)
steps = 0.1 * torch.randn(2, 2, 12, 12)
h = kornia.geometry.elastic_transform2d(h, steps, (5, 5), (2.0, 2.0))
loss = kornia.geometry.pyrdown(h).square().mean() + kornia.morphology.dilation(
    h, torch.ones(3, 3)
).mean()
""",
}

PROGRAMS = {name: _DATA + body for name, body in _BODIES.items()}
