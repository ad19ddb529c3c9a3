"""Guided backprop with hooks: "Backward hook returned an invalid number of grad_input"."""

import torch
from torch import nn

torch.manual_seed(0)


class Guided:
    def __init__(self, model):
        self.model = model
        for module in model.modules():
            if isinstance(module, nn.ReLU):
                module.register_full_backward_hook(self.positive_only)  # <~ GS410

    @staticmethod
    def positive_only(_module, grad_input, _grad_output):
        return grad_input[0].clamp(min=0)  # <- GS410

    def saliency(self, picture, label):
        picture = picture.clone().requires_grad_()
        score = self.model(picture)[:, label].sum()
        score.backward()
        return picture.grad, score.item()


model = nn.Sequential(nn.Linear(16, 24), nn.ReLU(), nn.Linear(24, 4))
guided = Guided(model)
for label in range(2):
    saliency, score = guided.saliency(torch.rand(3, 16), label)
    print(f"label {label} loss {-score:.4f} largest {saliency.abs().max().item():.4f}")
