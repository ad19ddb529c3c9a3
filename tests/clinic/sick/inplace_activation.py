"""In-place activations save memory everywhere else, but this block raises in backward."""

import torch
from torch import nn

torch.manual_seed(0)


class Spectrum(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(10, 10)
        self.limit = nn.Hardtanh(0.0, 2.0, inplace=True)
        self.head = nn.Linear(10, 2)

    def forward(self, x):
        energy = torch.exp(0.5 * self.mix(x))  # <~ GS401
        energy = self.limit(energy)  # <- GS401
        return self.head(energy)


def main():
    x = torch.randn(25, 10)
    y = torch.randint(0, 2, (25,))
    model = Spectrum()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    for step in range(3):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(step, loss.item())


main()
