"""PGD inside the training loop: gradients of the attack go to the input and are thrown away."""

import torch
from torch import nn

torch.manual_seed(0)


def pgd(model, x, y, eps=0.1, alpha=0.05, steps=2):
    delta = torch.zeros_like(x).uniform_(-eps, eps)
    for _ in range(steps):
        delta.requires_grad_(True)
        loss = nn.functional.cross_entropy(model(x + delta), y)
        loss.backward()
        grad = delta.grad.detach()
        delta = (delta.detach() + alpha * grad.sign()).clamp(-eps, eps)
    model.zero_grad()
    return (x + delta).detach()


CODE = """
class Noisy(nn.Module):
    def __init__(self, inner, sigma=0.01):
        super().__init__()
        self.inner, self.sigma = inner, sigma

    def forward(self, x):
        if self.training:
            x = x + self.sigma * torch.randn_like(x)
        return self.inner(x)
"""
namespace = {"nn": nn, "torch": torch}
exec(CODE, namespace)

model = namespace["Noisy"](nn.Sequential(nn.Linear(8, 20), nn.ELU(inplace=True), nn.Linear(20, 3)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    x, y = torch.randn(20, 8), torch.randint(0, 3, (20,))
    model.eval()
    adversarial = pgd(model, x, y)
    model.train()
    optimizer.zero_grad()
    clean, robust = (nn.functional.cross_entropy(model(z), y) for z in (x, adversarial))
    (0.5 * clean + 0.5 * robust).backward()
    optimizer.step()
    print(step, clean.item(), robust.item())
