"""Only hard examples count, and in some batch there is none: a mean over nothing."""

import torch
from torch import nn

torch.manual_seed(0)


def hard_loss(logits, labels, least):
    each = nn.functional.cross_entropy(logits, labels, reduction="none")
    return each[each > least].mean()  # <- GS101


def main():
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for least in (0.2, 0.5, 2.5):
        x = torch.randn(16, 6)
        loss = hard_loss(model(x), (x[:, 0] > 0).long(), least)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(least, loss.item())


main()
