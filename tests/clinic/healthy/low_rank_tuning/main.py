import torch
import torch.nn as nn
import torch.nn.functional as F

from lora import inject, trainable_state

CFG = {
    "dim": 16,
    "hidden": 48,
    "classes": 4,
    "batch": 64,
    "pretrain": 30,
    "tune": 30,
    "rank": 4,
    "lr": 5e-3,
    "seed": 11,
}


class Block(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.up_proj = nn.Linear(dim, hidden)
        self.down_proj = nn.Linear(hidden, dim)

    def forward(self, x):
        return x + self.down_proj(F.gelu(self.up_proj(self.norm(x))))


class Net(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.blocks = nn.Sequential(*[Block(cfg["dim"], cfg["hidden"]) for _ in range(2)])
        self.head = nn.Linear(cfg["dim"], cfg["classes"])

    def forward(self, x):
        return self.head(self.blocks(x))


def batch(cfg, teacher, gen):
    x = torch.randn(cfg["batch"], cfg["dim"], generator=gen)
    return x, (x @ teacher).argmax(1)


def fit(model, teacher, steps, cfg, gen, tag):
    optimizer = torch.optim.AdamW(
        [p for p in model.parameters() if p.requires_grad], lr=cfg["lr"], weight_decay=0.0
    )
    for step in range(1, steps + 1):
        x, y = batch(cfg, teacher, gen)
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"{tag} step {step} loss {loss.item():.4f}")


def main():
    torch.manual_seed(CFG["seed"])
    gen = torch.Generator().manual_seed(CFG["seed"])
    source = torch.randn(CFG["dim"], CFG["classes"], generator=gen)
    shifted = source + 0.8 * torch.randn(CFG["dim"], CFG["classes"], generator=gen)
    model = Net(CFG)
    fit(model, source, CFG["pretrain"], CFG, gen, "pretrain")
    model.requires_grad_(False)
    inject(model, {"up_proj", "down_proj"}, CFG["rank"])
    fit(model, shifted, CFG["tune"], CFG, gen, "tune")
    adapter = trainable_state(model)
    print(f"adapter tensors {len(adapter)} values {sum(v.numel() for v in adapter.values())}")


if __name__ == "__main__":
    main()
