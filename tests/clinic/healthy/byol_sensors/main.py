"""Self-supervised pretraining on sensor windows, then a linear probe on frozen features."""

import torch
import torch.nn.functional as F
from model import BootstrapModel
from torch import nn


def windows(count, length=32):
    y = torch.randint(0, 3, (count,))
    t = torch.linspace(0, 1, length)
    freq = 2.0 + 3.0 * y.float().view(-1, 1, 1)
    phase = torch.rand(count, 3, 1) * 6.28
    return torch.sin(6.28 * freq * t + phase) + 0.2 * torch.randn(count, 3, length), y


def augment(x):
    scale = 1.0 + 0.2 * torch.randn(len(x), x.shape[1], 1)
    shift = int(torch.randint(0, x.shape[-1], ()).item())
    return (x * scale).roll(shift, dims=-1) + 0.1 * torch.randn_like(x)


def pretrain(model, x, steps=24, batch=48):
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=3e-3, weight_decay=1e-4)
    warmup = torch.optim.lr_scheduler.LinearLR(optimizer, 0.25, total_iters=6)
    for step in range(steps):
        pick = torch.randint(0, len(x), (batch,))
        loss = model(augment(x[pick]), augment(x[pick]))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        warmup.step()
        model.move_target(step / steps)
        if step % 8 == 7:
            print(f"pretrain {step + 1} loss {loss.item():.4f}")


def probe(model, x, y, steps=12):
    encoder = model.online.encoder.eval().requires_grad_(False)
    head = nn.Linear(24, 3)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.5, momentum=0.9)
    features = encoder(x)
    features = (features - features.mean(0)) / (features.std(0) + 1e-5)
    for _ in range(steps):
        loss = F.cross_entropy(head(features), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"probe acc {(head(features).argmax(1) == y).float().mean().item():.3f}")


if __name__ == "__main__":
    torch.manual_seed(2)
    x, y = windows(192)
    net = BootstrapModel()
    pretrain(net, x)
    probe(net, x, y)
