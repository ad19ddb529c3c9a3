"""Steps of training with torch alone: what is done with a network, rather than what it is made
of."""

from __future__ import annotations

PROGRAMS = {
    "gradient penalty": """
judge = nn.Sequential(nn.Linear(3, 8), nn.Softplus(), nn.Linear(8, 1))
real, fake = torch.randn(5, 3), torch.randn(5, 3)
share = torch.rand(5, 1)
between = (share * real + (1 - share) * fake).requires_grad_()
(slope,) = torch.autograd.grad(judge(between).sum(), between, create_graph=True)
loss = judge(fake).mean() - judge(real).mean() + 10 * (slope.norm(dim=1) - 1).square().mean()
""",
    "variational autoencoder": """
from torch.distributions import Normal, kl_divergence
encode, decode = nn.Linear(6, 4), nn.Linear(2, 6)
x = torch.rand(5, 6)
mean, spread = encode(x).chunk(2, 1)
posterior = Normal(mean, nn.functional.softplus(spread) + 1e-3)
z = posterior.rsample()
missed = nn.functional.binary_cross_entropy(decode(z).sigmoid(), x, reduction="sum")
loss = missed + kl_divergence(posterior, Normal(0.0, 1.0)).sum()
""",
    "vector quantisation, straight through": """
encode, decode, book = nn.Linear(4, 3), nn.Linear(3, 4), nn.Embedding(8, 3)
x = torch.randn(6, 4)
z = encode(x)
code = book(torch.cdist(z, book.weight).argmin(1))
through = z + (code - z).detach()
loss = (decode(through) - x).square().mean()
loss = loss + (code - z.detach()).square().mean() + 0.25 * (z - code.detach()).square().mean()
""",
    "diffusion": """
net, time = nn.Sequential(nn.Linear(4, 16), nn.SiLU(), nn.Linear(16, 4)), nn.Embedding(10, 4)
kept = torch.cumprod(1 - torch.linspace(1e-4, 0.3, 10), 0)
x, noise, t = torch.randn(8, 4), torch.randn(8, 4), torch.randint(10, (8,))
noisy = kept[t, None].sqrt() * x + (1 - kept[t, None]).sqrt() * noise
loss = nn.functional.mse_loss(net(noisy + time(t)), noise)
""",
    "triplets through a siamese network": """
tower = nn.Sequential(nn.Linear(5, 6), nn.CELU(), nn.Linear(6, 3))
here, near, far = (tower(torch.randn(4, 5)) for _ in range(3))
loss = nn.functional.triplet_margin_loss(here, near, far, swap=True)
loss = loss + nn.functional.cosine_embedding_loss(here, near, torch.tensor([1, -1, 1, -1]))
""",
    "CTC": """
net, head = nn.GRU(4, 6), nn.Linear(6, 5)
out, _ = net(torch.randn(9, 2, 4))
targets, sizes = torch.randint(1, 5, (2, 3)), torch.tensor([3, 2])
loss = nn.functional.ctc_loss(head(out).log_softmax(2), targets, torch.tensor([9, 8]), sizes)
""",
    "quantisation-aware training": """
class Rounded(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, step):
        ctx.save_for_backward(x, step)
        return (x / step).round().clamp(-8, 7) * step
    @staticmethod
    def backward(ctx, g):
        x, step = ctx.saved_tensors
        inside = (x / step).abs() <= 8
        rest = torch.where(inside, (x / step).round() - x / step, (x / step).clamp(-8, 7))
        return g * inside, (g * rest).sum()
weight, step = nn.Parameter(torch.randn(3, 5)), nn.Parameter(torch.tensor(0.2))
x = torch.fake_quantize_per_tensor_affine(torch.randn(4, 5), 0.1, 0, -128, 127)
loss = nn.functional.linear(x, Rounded.apply(weight, step)).square().mean()
""",
    "physics-informed network": """
net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1))
points = torch.rand(10, 2, requires_grad=True)
u = net(points)
(slope,) = torch.autograd.grad(u.sum(), points, create_graph=True)
(bend,) = torch.autograd.grad(slope[:, 0].sum(), points, create_graph=True)
loss = (slope[:, 1] - 0.1 * bend[:, 0]).square().mean() + net(torch.zeros(3, 2)).square().mean()
""",
    "radiance field": """
net = nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 4))
starts, directions = torch.randn(5, 3), nn.functional.normalize(torch.randn(5, 3), dim=1)
depths = torch.linspace(0.1, 2, 6).requires_grad_()
points = starts[:, None] + directions[:, None] * depths[:, None]
waves = torch.cat([f(2 ** k * points) for k in range(2) for f in (torch.sin, torch.cos)], -1)
color, density = net(waves).split([3, 1], -1)
opaque = 1 - torch.exp(-nn.functional.softplus(density.squeeze(-1)) * 0.3)
passed = torch.cumprod(1 - opaque + 1e-10, 1)
loss = ((opaque * passed)[..., None] * color.sigmoid()).sum(1).sub(0.5).square().mean()
""",
    "distillation": """
teacher, pupil = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3)), nn.Linear(4, 3)
x = torch.randn(6, 4)
with torch.inference_mode():
    soft = (teacher(x) / 2).softmax(1)
loss = nn.functional.kl_div((pupil(x) / 2).log_softmax(1), soft.clone(), reduction="batchmean")
""",
}
