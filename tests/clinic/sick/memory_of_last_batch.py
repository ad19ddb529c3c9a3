import torch
from torch import nn


class MemoryReader(nn.Module):
    def __init__(self, width, slots):
        super().__init__()
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(2 * width, width)
        self.register_buffer("memory", torch.zeros(slots, width))

    def read(self, x):
        weights = torch.softmax(self.key(x) @ self.memory.T, dim=1)
        return weights @ self.memory

    def forward(self, x):
        context = self.read(x)
        new = torch.tanh(self.value(torch.cat([x, context], dim=1)))  # <- GS402
        written = torch.cat([self.memory, new])[-self.memory.shape[0] :]
        self.memory = written  # <~ GS402
        return new


torch.manual_seed(0)
model, head = MemoryReader(6, 8), nn.Linear(6, 1)
optimizer = torch.optim.Adam([*model.parameters(), *head.parameters()], lr=1e-3)
for _ in range(4):
    x = torch.randn(4, 6)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(head(model(x)), x.mean(dim=1, keepdim=True))
    loss.backward()
    optimizer.step()
