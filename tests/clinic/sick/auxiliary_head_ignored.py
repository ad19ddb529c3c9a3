"""The auxiliary head stays at its initial weights; its .grad is None after every backward."""

import torch
from torch import nn

torch.manual_seed(0)


class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(7, 20), nn.Tanh())
        self.main = nn.Linear(20, 4)
        self.aux = nn.Linear(20, 2)

    def forward(self, x):
        h = self.body(x)
        return {
            "main": self.main(h),
            "aux": self.aux(h),  # <- GS301
        }


def criterion(outputs, batch):
    loss = nn.functional.cross_entropy(outputs["main"], batch["label"])
    return loss


batch = {
    "x": torch.randn(24, 7),
    "label": torch.randint(0, 4, (24,)),
    "side": torch.randint(0, 2, (24,)),
}
model = TwoHeads()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(3):
    optimizer.zero_grad()
    loss = criterion(model(batch["x"]), batch)
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4f}")
