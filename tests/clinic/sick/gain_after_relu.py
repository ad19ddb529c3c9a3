"""A gain is multiplied into the features in place, after an activation that is in place, too."""

import torch
from torch import nn

torch.manual_seed(0)


class Encoder(nn.Module):
    def __init__(self, width, gain):
        super().__init__()
        self.gain = gain
        self.body = nn.Sequential(
            nn.Linear(12, width),
            nn.ReLU(inplace=True),
            nn.Linear(width, width),
            nn.ReLU(inplace=True),
        )
        self.head = nn.Linear(width, 3)

    def forward(self, x):
        x = self.body(x)
        x *= self.gain  # <- GS401
        return self.head(x)


def main():
    model = Encoder(width=24, gain=2.0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(3):
        x, y = torch.randn(32, 12), torch.randint(0, 3, (32,))
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(step, loss.item())


main()
