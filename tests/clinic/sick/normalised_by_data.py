"""The encoder does not train while the decoder does. No error, the loss even goes down a bit."""

import torch
from torch import nn

torch.manual_seed(0)


class AutoEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(20, 5)
        self.decoder = nn.Linear(5, 20)

    def encode(self, x):
        code = self.encoder(x)
        length = code.norm(dim=1, keepdim=True) + 1e-6
        return code.data / length.data  # <- GS303

    def forward(self, x):
        return self.decoder(self.encode(x))


x = torch.randn(50, 20)
model = AutoEncoder()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for epoch in range(4):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x)
    loss.backward()
    optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.4f}")
