"""Random weights that never move: only the scores that choose among them are learned."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class TopFraction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, scores, fraction: float):
        kept = int(fraction * scores.numel())
        border = scores.flatten().topk(kept).values[-1]
        return (scores >= border).to(scores.dtype)

    @staticmethod
    def backward(ctx, grad):
        return grad, None


class MaskedLinear(nn.Linear):
    def __init__(self, inputs: int, outputs: int, fraction: float):
        super().__init__(inputs, outputs, bias=False)
        self.fraction = fraction
        self.scores = nn.Parameter(torch.empty_like(self.weight))
        nn.init.kaiming_uniform_(self.scores, a=math.sqrt(5))
        with torch.no_grad():
            std = math.sqrt(2 / (inputs * fraction))
            self.weight.copy_(torch.randn_like(self.weight).sign() * std)
        self.weight.requires_grad_(False)

    def forward(self, x):
        mask = TopFraction.apply(self.scores.abs(), self.fraction)
        return F.linear(x, self.weight * mask)


class SuperNet(nn.Module):
    def __init__(self, sizes=(20, 64, 64, 5), fraction=0.5):
        super().__init__()
        self.layers = nn.ModuleList(MaskedLinear(a, b, fraction) for a, b in zip(sizes, sizes[1:]))

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = F.relu(layer(x))
        return self.layers[-1](x)


def groups(n: int, centres):
    label = torch.randint(0, len(centres), (n,))
    return centres[label] + torch.randn(n, centres.size(1)), label


def main():
    torch.manual_seed(37)
    centres = 1.2 * torch.randn(5, 20)
    x, y = groups(512, centres)
    val_x, val_y = groups(128, centres)
    model = SuperNet()
    chosen = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(chosen, lr=0.1, momentum=0.9, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 30)
    for step in range(30):
        pick = torch.randint(0, 512, (64,))
        loss = F.cross_entropy(model(x[pick]), y[pick])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        if step % 10 == 9:
            with torch.no_grad():
                right = (model(val_x).argmax(1) == val_y).float().mean().item()
            print(f"step {step + 1}: loss {loss.item():.4f}  accuracy {right:.3f}")


if __name__ == "__main__":
    main()
