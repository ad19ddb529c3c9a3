import itertools

import torch
from torch import nn

torch.manual_seed(0)
widths = [3, 8, 8, 8, 8]
layers = [nn.Linear(a, b) for a, b in itertools.pairwise(widths)]  # <~ GS307
readout = nn.Linear(8, 1)


def predict(x):
    for layer in layers:
        x = torch.tanh(layer(x))
    return readout(x)


learned = list(readout.parameters())
for layer in layers[:2]:
    learned.extend(layer.parameters())
optimizer = torch.optim.Adam(learned, lr=1e-2)  # <- GS307
for step in range(5):
    x = torch.rand(32, 3)
    optimizer.zero_grad()
    loss = (predict(x) - x.prod(dim=1, keepdim=True)).pow(2).mean()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
