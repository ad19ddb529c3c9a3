"""One trunk, one adapter and one optimizer per domain; a batch comes from one domain."""

import torch
import torch.nn.functional as F
from torch import nn

DOMAINS = ("news", "mail", "chat", "law")


class Adapter(nn.Module):
    def __init__(self, width, bottleneck=8):
        super().__init__()
        self.down = nn.Linear(width, bottleneck)
        self.up = nn.Linear(bottleneck, width)
        nn.init.zeros_(self.up.weight)
        nn.init.zeros_(self.up.bias)

    def forward(self, x):
        return x + self.up(F.gelu(self.down(x)))


class DomainNet(nn.Module):
    def __init__(self, n_in=12, width=24, classes=3):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(n_in, width), nn.GELU())
        self.adapters = nn.ModuleDict({name: Adapter(width) for name in DOMAINS})
        self.head = nn.Linear(width, classes)

    def forward(self, x, domain=None):
        z = self.trunk(x)
        if domain is not None:
            z = self.adapters[domain](z)
        return self.head(z)


class OptimizerBank:
    """The trunk's and every adapter's optimizer behind one interface."""

    def __init__(self, model):
        self.bank = {
            "trunk": torch.optim.SGD(model.trunk.parameters(), lr=0.1, momentum=0.9),
            "head": torch.optim.SGD(model.head.parameters(), lr=0.1, momentum=0.9),
        }
        for name, adapter in model.adapters.items():
            self.bank[name] = torch.optim.Adam(adapter.parameters(), lr=0.01)
        self.schedulers = [
            torch.optim.lr_scheduler.ExponentialLR(self.bank[k], 0.9) for k in ("trunk", "head")
        ]

    def zero_grad(self):
        for optimizer in self.bank.values():
            optimizer.zero_grad(set_to_none=True)

    def step(self):
        for optimizer in self.bank.values():
            optimizer.step()

    def end_epoch(self):
        for scheduler in self.schedulers:
            scheduler.step()


def make_domains():
    base = torch.randn(3, 12)
    data = {}
    for name in DOMAINS:
        rotation = torch.linalg.qr(torch.eye(12) + 0.15 * torch.randn(12, 12)).Q
        y = torch.randint(0, 3, (96,))
        data[name] = ((1.3 * base[y] + torch.randn(96, 12)) @ rotation, y)
    return data


def schedule_of(epoch):
    """The plain trunk in the first epoch; the last domain arrives in the third."""
    if epoch == 0:
        return [None, None, None, None]
    available = DOMAINS if epoch >= 2 else DOMAINS[:-1]
    return list(available) * 2


def main():
    torch.manual_seed(0)
    data = make_domains()
    model = DomainNet()
    optimizers = OptimizerBank(model)
    used = dict.fromkeys(DOMAINS, 0)
    for epoch in range(5):
        losses = []
        for domain in schedule_of(epoch):
            x, y = data[domain or "news"]
            ids = torch.randint(0, len(x), (32,))
            optimizers.zero_grad()
            loss = F.cross_entropy(model(x[ids], domain), y[ids])
            loss.backward()
            optimizers.step()
            losses.append(loss.item())
            if domain is not None:
                used[domain] += 1
        optimizers.end_epoch()
        print(f"epoch {epoch} loss {sum(losses) / len(losses):.3f} uses {used}")
    model.eval()
    with torch.no_grad():
        for name, (x, y) in data.items():
            accuracy = (model(x, name).argmax(1) == y).float().mean().item()
            print(f"{name}: accuracy {accuracy:.2f}")


if __name__ == "__main__":
    main()
