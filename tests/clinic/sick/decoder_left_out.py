"""Reconstructions stay noise. The encoder's weights move, the decoder's never do."""

import torch
from torch import nn

torch.manual_seed(0)

encoder = nn.Sequential(nn.Linear(30, 12), nn.Tanh(), nn.Linear(12, 4))
decoder = nn.Sequential(nn.Linear(4, 12), nn.Tanh(), nn.Linear(12, 30))  # <- GS307

optimizer = torch.optim.Adam(encoder.parameters(), lr=3e-3)  # <~ GS307
batches = [torch.randn(25, 30)] * 3


def reconstruct(x):
    return decoder(encoder(x))


for epoch, batch in enumerate(batches):
    encoder.zero_grad()
    decoder.zero_grad()
    loss = nn.functional.mse_loss(reconstruct(batch), batch)
    loss.backward()
    optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.4f}")
