import torch
from torch import nn


class Adapter(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.down = nn.Linear(width, 8)
        self.up = nn.Linear(8, width)

    def forward(self, x):
        return x + self.up(nn.functional.silu(self.down(x)))


config = {"dtype": torch.bfloat16, "lr": 2e-6, "steps": 5}
torch.manual_seed(0)
model = nn.Sequential(Adapter(32), Adapter(32), nn.Linear(32, 4)).to(config["dtype"])  # <- GS313
optimizer = torch.optim.AdamW(model.parameters(), lr=config["lr"], weight_decay=0.0)
for step in range(config["steps"]):
    x = torch.randn(16, 32, dtype=config["dtype"])
    labels = torch.randint(0, 4, (16,))
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x).float(), labels)
    loss.backward()
    optimizer.step()  # <~ GS313
    print(step, loss.item())
