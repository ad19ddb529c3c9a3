import torch
import torch.nn as nn
import torch.nn.functional as F
from architect import Architect
from cells import SearchNet

CONFIG = dict(lr=0.1, momentum=0.9, weight_decay=3e-4, arch_lr=6e-3, arch_decay=1e-3, steps=18)


def waves(n: int, length: int = 24):
    label = torch.randint(0, 4, (n,))
    t = torch.linspace(0, 6.28, length)
    phase = 6.28 * torch.rand(n, 1)
    signal = torch.sin((label[:, None] + 1) * t + phase)
    return torch.stack([signal, signal.roll(3, 1)], 1) + 0.3 * torch.randn(n, 2, length), label


def draw(x, y, size: int = 32):
    pick = torch.randint(0, len(x), (size,))
    return x[pick], y[pick]


def genotype(net) -> list[int]:
    return net.alpha.argmax(dim=-1).tolist()


def main():
    torch.manual_seed(17)
    x, y = waves(256)
    train, valid = (x[:128], y[:128]), (x[128:], y[128:])
    net = SearchNet()
    optimizer = torch.optim.SGD(
        net.parameters(),  # <- GS000
        lr=CONFIG["lr"],
        momentum=CONFIG["momentum"],
        weight_decay=CONFIG["weight_decay"],
    )
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, CONFIG["steps"], 1e-3)
    architect = Architect(net, CONFIG["arch_lr"], CONFIG["arch_decay"])
    for step in range(CONFIG["steps"]):
        valid_loss = architect.step(*draw(*valid))
        bx, by = draw(*train)
        optimizer.zero_grad()
        loss = F.cross_entropy(net(bx), by)
        loss.backward()
        nn.utils.clip_grad_norm_(net.weight_parameters(), 5.0)
        optimizer.step()
        scheduler.step()
        if step % 6 == 5:
            print(
                f"step {step + 1}: train {loss.item():.4f}  valid {valid_loss:.4f}  "
                f"genotype {genotype(net)}"
            )


if __name__ == "__main__":
    main()
