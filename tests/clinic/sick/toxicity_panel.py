"""Multi-task regression of assay values where not every compound was measured everywhere."""

import torch
from torch import nn

TASKS = ("solubility", "clearance", "binding")


class Panel(torch.utils.data.Dataset):
    def __init__(self, count=192, inputs=16, missing=0.04):
        self.x = torch.randn(count, inputs)
        mix = torch.randn(inputs, len(TASKS)) / inputs**0.5
        self.y = torch.tanh(self.x @ mix) + 0.05 * torch.randn(count, len(TASKS))
        gaps = torch.rand(count, len(TASKS)) < missing
        gaps[:32] = False
        self.y[gaps] = float("nan")

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        return self.x[index], self.y[index]


class SharedTrunk(nn.Module):
    def __init__(self, inputs=16, hidden=32):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU()
        )
        self.heads = nn.ModuleDict({name: nn.Linear(hidden, 1) for name in TASKS})

    def forward(self, x):
        h = self.trunk(x)
        return torch.cat([self.heads[name](h) for name in TASKS], dim=1)


class MaskedLoss(nn.Module):
    def __init__(self, weights):
        super().__init__()
        self.register_buffer("weights", torch.tensor(weights))

    def forward(self, pred, target):
        measured = ~torch.isnan(target)
        error = (pred - target).square() * self.weights  # <- GS102
        return error[measured].mean()  # <~ GS102


def evaluate(model, data):
    model.eval()
    with torch.no_grad():
        error = (model(data.x) - data.y).abs()
    model.train()
    return {name: round(error[:, i].nanmean().item(), 3) for i, name in enumerate(TASKS)}


def main():
    torch.manual_seed(27)
    data = Panel()
    loader = torch.utils.data.DataLoader(data, batch_size=16)
    model = SharedTrunk()
    criterion = MaskedLoss([1.0, 0.5, 2.0])
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(2):
        for step, (x, y) in enumerate(loader):
            loss = criterion(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            if step % 4 == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.4f}")
        print(evaluate(model, data))


if __name__ == "__main__":
    main()
