"""An autoencoder with a prior on its code, whose weight is too large: it learns nothing else."""

import torch
from torch import nn

torch.manual_seed(0)


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(16, 4)
        self.decoder = nn.Linear(4, 16)

    def forward(self, x):
        code = self.encoder(x)
        return self.decoder(code), code


model = Autoencoder()
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
data = torch.randn(256, 16)
for _ in range(100):
    x = data[torch.randint(256, (32,))]
    rebuilt, code = model(x)
    likeness = (rebuilt - x).square().mean()
    prior = code.square().mean()
    loss = likeness + 20 * prior
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
