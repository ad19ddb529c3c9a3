"""FGSM attack: image.grad is None after backward, with a warning about non-leaf tensors."""

import torch
from torch import nn

torch.manual_seed(0)

network = nn.Sequential(nn.Linear(49, 20), nn.Tanh(), nn.Linear(20, 3)).double()
for parameter in network.parameters():
    parameter.requires_grad_(False)


def attack(image, label, epsilon=0.03):
    image = image.requires_grad_()
    image = image.to(torch.float64)  # <- GS306
    loss = nn.functional.cross_entropy(network(image), label)
    loss.backward()
    direction = image.grad.sign()
    return (image.detach() + epsilon * direction).clamp(0, 1), loss.item()


pictures = torch.rand(8, 49)
labels = torch.randint(0, 3, (8,))
for _round in range(2):
    fooled, loss = attack(pictures.clone(), labels)
    pictures = fooled.float()
    print(f"loss {loss:.4f}")
