"""Mixed precision: the loss is NaN from step 0. Without autocast everything works."""

import torch
from torch import nn

torch.manual_seed(0)

SCALE = 5e4


class Attention(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)

    def forward(self, x):
        q, k, v = self.query(x), self.key(x), self.value(x)
        scores = torch.bmm(q, k.transpose(1, 2))  # <- GS101
        weights = torch.softmax(scores / SCALE, dim=-1)
        return torch.bmm(weights, v)


model = Attention()
with torch.no_grad():
    model.query.weight.mul_(60)
    model.key.weight.mul_(60)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
x = torch.randn(4, 6, 64)
x = x + 3 * torch.randn(64)
target = torch.randn(4, 6, 64)
for step in range(3):
    with torch.autocast("cpu", dtype=torch.float16):
        out = model(x)
    loss = nn.functional.mse_loss(out.float(), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
