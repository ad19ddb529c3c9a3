import torch
import torch.nn.functional as F
from torch import nn

from trainer import DistillTrainer

CFG = dict(
    seed=9,
    in_dim=16,
    classes=5,
    lr=0.05,
    temperature=3.0,
    alpha=0.7,
    clip=1.0,
    micro=4,
    micro_batch=32,
    steps=40,
)


def mlp(din, hidden, dout):
    return nn.Sequential(
        nn.Linear(din, hidden),
        nn.ReLU(),
        nn.Linear(hidden, hidden),
        nn.ReLU(),
        nn.Linear(hidden, dout),
    )


def draw(n, proj, gen):
    x = torch.randn(n, proj.shape[0], generator=gen)
    return x, (x @ proj + 0.5 * (x @ proj).sin()).argmax(-1)


def pretrain(model, proj, gen, steps=30):
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for _ in range(steps):
        x, y = draw(128, proj, gen)
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


@torch.no_grad()
def accuracy(model, x, y):
    return (model(x).argmax(-1) == y).float().mean().item()


def main(cfg):
    torch.manual_seed(cfg["seed"])
    gen = torch.Generator().manual_seed(cfg["seed"])
    proj = torch.randn(cfg["in_dim"], cfg["classes"], generator=gen)
    val = draw(512, proj, gen)
    teacher, student = (
        mlp(cfg["in_dim"], 64, cfg["classes"]),
        mlp(cfg["in_dim"], 16, cfg["classes"]),
    )
    pretrain(teacher, proj, gen)
    print(f"teacher acc {accuracy(teacher, *val):.3f}")
    trainer = DistillTrainer(teacher, student, cfg)
    for step in range(cfg["steps"]):
        loss = trainer.step([draw(cfg["micro_batch"], proj, gen) for _ in range(cfg["micro"])])
        if step % 10 == 0 or step == cfg["steps"] - 1:
            print(
                f"step {step:3d}  loss {loss:.4f}  scale {trainer.scaler.get_scale():.0f}  "
                f"acc {accuracy(student, *val):.3f}"
            )


if __name__ == "__main__":
    main(CFG)
