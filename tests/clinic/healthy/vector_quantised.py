"""A vector-quantised autoencoder: codebook and commitment losses use detach on purpose."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class VQ(nn.Module):
    def __init__(self, codes=8, width=4):
        super().__init__()
        self.encoder = nn.Linear(12, width)
        self.codebook = nn.Parameter(torch.randn(codes, width))
        self.decoder = nn.Linear(width, 12)

    def forward(self, x):
        z = self.encoder(x)
        index = torch.cdist(z, self.codebook).argmin(dim=1)
        chosen = self.codebook[index]
        commitment = F.mse_loss(z, chosen.detach())
        dictionary = F.mse_loss(chosen, z.detach())
        return self.decoder(z + (chosen - z).detach()), dictionary + 0.25 * commitment


x = torch.randn(50, 12)
model = VQ()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for step in range(4):
    restored, extra = model(x)
    loss = F.mse_loss(restored, x) + extra
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
