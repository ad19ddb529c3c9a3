import torch
import torch.nn as nn
import torch.nn.functional as F

from sam import SAM

CFG = {
    "samples": 256,
    "classes": 3,
    "batch_size": 32,
    "epochs": 5,
    "lr": 0.1,
    "momentum": 0.9,
    "rho": 0.05,
    "seed": 2,
}


def spirals(cfg, gen):
    per = cfg["samples"] // cfg["classes"]
    xs, ys = [], []
    for c in range(cfg["classes"]):
        r = torch.linspace(0.2, 1.0, per)
        a = 2.5 * r + 2 * torch.pi * c / cfg["classes"] + 0.1 * torch.randn(per, generator=gen)
        xs.append(torch.stack([r * a.cos(), r * a.sin()], 1))
        ys.append(torch.full((per,), c))
    return torch.cat(xs), torch.cat(ys)


class Net(nn.Module):
    def __init__(self, classes, hidden=32):
        super().__init__()
        self.fc1 = nn.Linear(2, hidden)
        self.norm = nn.BatchNorm1d(hidden)
        self.fc2 = nn.Linear(hidden, classes)

    def forward(self, x):
        return self.fc2(F.relu(self.norm(self.fc1(x))))


def set_bn_momentum(model, active):
    for m in model.modules():
        if isinstance(m, nn.BatchNorm1d):
            m.momentum = 0.1 if active else 0.0


def main():
    torch.manual_seed(CFG["seed"])
    gen = torch.Generator().manual_seed(CFG["seed"])
    x, y = spirals(CFG, gen)
    model = Net(CFG["classes"])
    optimizer = SAM(
        torch.optim.SGD(model.parameters(), lr=CFG["lr"], momentum=CFG["momentum"]), CFG["rho"]
    )
    for epoch in range(CFG["epochs"]):
        total, batches = 0.0, 0
        for idx in torch.randperm(len(x), generator=gen).split(CFG["batch_size"]):
            set_bn_momentum(model, True)
            loss = F.cross_entropy(model(x[idx]), y[idx], label_smoothing=0.05)
            loss.backward()
            optimizer.first_step()
            set_bn_momentum(model, False)
            F.cross_entropy(model(x[idx]), y[idx], label_smoothing=0.05).backward()
            optimizer.second_step()
            total += loss.item()
            batches += 1
        print(f"epoch {epoch} loss {total / batches:.4f}")


if __name__ == "__main__":
    main()
