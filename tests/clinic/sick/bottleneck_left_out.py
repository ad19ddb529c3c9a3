"""An autoencoder whose two halves have learning rates of their own; the code stays poor."""

import torch
from torch import nn

torch.manual_seed(0)


class Autoencoder(nn.Module):
    def __init__(self, size=20, width=32, code=6):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(size, width), nn.GELU(), nn.Linear(width, width), nn.GELU()
        )
        self.bottleneck = nn.Linear(width, code)
        self.decoder = nn.Sequential(
            nn.Linear(code, width), nn.GELU(), nn.Linear(width, width), nn.GELU()
        )
        self.out = nn.Linear(width, size)

    def forward(self, x):
        return self.out(self.decoder(self.bottleneck(self.encoder(x))))


model = Autoencoder()
optimizer = torch.optim.Adam(  # <- GS307
    [
        {"params": model.encoder.parameters(), "lr": 1e-3},
        {"params": model.decoder.parameters(), "lr": 3e-3},
        {"params": model.out.parameters(), "lr": 3e-3},
    ]
)
basis = torch.randn(6, 20)
for step in range(6):
    x = torch.randn(32, 6) @ basis
    loss = nn.functional.mse_loss(model(x), x)
    model.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4f}")
