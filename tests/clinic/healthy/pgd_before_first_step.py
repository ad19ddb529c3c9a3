"""Seven PGD steps with backward before the first step; the input kept as an attribute."""

import torch
from torch import nn

torch.manual_seed(0)


class Recording(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 3))

    def forward(self, x):
        self.input = x
        self.feature = self.net[0](x)
        return self.net[3](self.net[2](self.net[1](self.feature)))


def attack(model, x, y, steps=7, alpha=2 / 255, eps=8 / 255):
    adv = (x + torch.empty_like(x).uniform_(-eps, eps)).detach()
    for _ in range(steps):
        adv.requires_grad_(True)
        model.zero_grad()
        nn.functional.cross_entropy(model(adv), y).backward()
        adv = adv.detach() + alpha * model.input.grad.sign()
        adv = torch.min(torch.max(adv, x - eps), x + eps).clamp(0, 1)
    return adv.detach()


model = Recording()
opt = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
losses = []
for _batch in range(2):
    x, y = torch.rand(8, 1, 8, 8), torch.randint(0, 3, (8,))
    adv = attack(model, x, y)
    opt.zero_grad()
    loss = nn.functional.cross_entropy(model(adv), y)
    loss.backward()
    opt.step()
    losses.append(loss.item())
print(losses)
