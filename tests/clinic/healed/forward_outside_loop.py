"""Healed. The shared part is computed in every iteration."""

import torch
import torch.nn.functional as F

torch.manual_seed(0)

NAMES = ["emma", "olivia", "ava", "isabella", "sophia"]
letters = sorted(set("".join(NAMES)) | {"."})
index = {letter: i for i, letter in enumerate(letters)}
pairs = [(a, b) for name in NAMES for a, b in zip("." + name, name + ".", strict=True)]
xs = torch.tensor([index[a] for a, _ in pairs])
ys = torch.tensor([index[b] for _, b in pairs])

weights = torch.randn(len(letters), len(letters), requires_grad=True)
bias = torch.zeros(len(letters), requires_grad=True)


for step in range(3):
    counts = (F.one_hot(xs, len(letters)).float() @ weights).exp()
    probabilities = counts * bias.exp()
    probabilities = probabilities / probabilities.sum(1, keepdim=True)
    loss = -probabilities[torch.arange(len(ys)), ys].log().mean()
    weights.grad = bias.grad = None
    loss.backward()
    with torch.no_grad():
        for parameter in (weights, bias):
            parameter -= 0.5 * parameter.grad
    print(step, loss.item())
