"""Networks of torch alone that look at images."""

from __future__ import annotations

PROGRAMS = {
    "LeNet": """
net = nn.Sequential(
    nn.Conv2d(1, 6, 5, padding=2), nn.Tanh(), nn.AvgPool2d(2), nn.Conv2d(6, 8, 5), nn.Tanh(),
    nn.AvgPool2d(2), nn.Flatten(), nn.Linear(8, 12), nn.Tanh(), nn.Linear(12, 10),
)
out = net(torch.randn(3, 1, 12, 12))
loss = nn.functional.nll_loss(out.log_softmax(1), torch.tensor([1, 2, 0]))
""",
    "MobileNet": """
class Inverted(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.wide = nn.Conv2d(width, 4 * width, 1)
        self.each = nn.Conv2d(4 * width, 4 * width, 3, padding=1, groups=4 * width)
        self.squeeze, self.narrow = nn.Linear(4 * width, 4 * width), nn.Conv2d(4 * width, width, 1)
    def forward(self, x):
        h = nn.functional.hardswish(self.each(nn.functional.relu6(self.wide(x))))
        scale = nn.functional.hardsigmoid(self.squeeze(h.mean((2, 3))))
        return x + self.narrow(h * scale[..., None, None])
net = nn.Sequential(nn.Conv2d(3, 4, 3, 2), Inverted(4), nn.GroupNorm(2, 4), Inverted(4))
loss = nn.functional.smooth_l1_loss(net(torch.randn(2, 3, 12, 12)), torch.ones(2, 4, 5, 5))
""",
    "video network of three dimensions": """
net = nn.Sequential(
    nn.Conv3d(1, 3, 3, padding=1), nn.BatchNorm3d(3), nn.ELU(), nn.MaxPool3d(2), nn.Dropout3d(0.3),
    nn.Conv3d(3, 4, 2), nn.AdaptiveMaxPool3d(1), nn.Flatten(), nn.Linear(4, 2),
)
loss = nn.MultiMarginLoss()(net(torch.randn(3, 1, 6, 6, 6)), torch.tensor([0, 1, 1]))
""",
    "autoencoder that undoes pooling": """
encode, pool = nn.Conv2d(1, 4, 3, padding=1), nn.MaxPool2d(2, return_indices=True)
unpool, decode = nn.MaxUnpool2d(2), nn.ConvTranspose2d(4, 1, 3, padding=1)
images = torch.rand(2, 1, 8, 8)
small, indices = pool(encode(images).relu())
loss = nn.functional.binary_cross_entropy_with_logits(decode(unpool(small, indices)), images)
""",
    "MLP-Mixer": """
def mixer(width):
    return nn.Sequential(nn.Linear(width, 2 * width), nn.Mish(), nn.Linear(2 * width, width))
across, along = nn.ModuleList(mixer(6) for _ in range(3)), nn.ModuleList(mixer(4) for _ in range(3))
x = torch.randn(2, 6, 4)
for first, second in zip(across, along):
    x = x + first(x.transpose(1, 2)).transpose(1, 2)
    x = x + second(nn.functional.layer_norm(x, (4,)))
loss = nn.functional.huber_loss(x.mean(1), torch.zeros(2, 4))
""",
    "spatial transformer": """
locate = nn.Sequential(nn.Flatten(), nn.Linear(64, 8), nn.ReLU(), nn.Linear(8, 6))
images = torch.rand(2, 1, 8, 8, requires_grad=True)
grid = nn.functional.affine_grid(locate(images).view(2, 2, 3), images.shape, align_corners=False)
seen = nn.functional.grid_sample(images, grid, align_corners=False, padding_mode="border")
loss = nn.functional.interpolate(seen, scale_factor=2, mode="bicubic").square().mean()
""",
    "super resolution": """
net = nn.Sequential(
    nn.Conv2d(1, 8, 3, padding=1, padding_mode="reflect"), nn.PReLU(8),
    nn.Conv2d(8, 4, 3, padding=1), nn.PixelShuffle(2),
)
small, large = torch.rand(2, 1, 6, 6), torch.rand(2, 1, 12, 12)
rough = nn.functional.interpolate(small, scale_factor=2, mode="bilinear", align_corners=True)
loss = nn.functional.l1_loss(net(small) + rough, large)
""",
}
