"""Half precision run: the loss is a sensible number and nothing moves at all."""

import torch
from torch import nn

torch.manual_seed(0)

PRECISION = torch.float16
PENALTY_WEIGHT = 1e-5


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 32)
        self.last = nn.Linear(32, 64)

    def forward(self, z):
        return self.last(torch.tanh(self.first(z)))


def train(model, z, image):
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    for step in range(3):
        optimizer.zero_grad()
        error = (model(z) - image).abs()
        loss = PENALTY_WEIGHT * error.mean()  # <- GS205
        loss.backward()
        optimizer.step()
        print(step, float(loss))


z = torch.randn(32, 8, dtype=PRECISION)
image = torch.rand(32, 64).to(PRECISION)
train(Decoder().to(PRECISION), z, image)
