import math

import torch
from torch import nn

from meta import FirstOrderMAML

CFG = dict(
    seed=2,
    hidden=32,
    inner_lr=0.02,
    inner_steps=3,
    outer_lr=4e-3,
    tasks=6,
    shots=10,
    meta_steps=12,
)


def sine_task(shots, gen):
    amp = 0.5 + 2.0 * torch.rand(1, generator=gen)
    phase = math.pi * 0.5 * torch.rand(1, generator=gen)

    def draw():
        x = 8 * torch.rand(shots, 1, generator=gen) - 4
        return x, amp * torch.sin(x + phase)

    return draw(), draw()


def main(cfg):
    torch.manual_seed(cfg["seed"])
    gen = torch.Generator().manual_seed(cfg["seed"])
    model = nn.Sequential(
        nn.Linear(1, cfg["hidden"]),
        nn.Tanh(),
        nn.Linear(cfg["hidden"], cfg["hidden"]),
        nn.Tanh(),
        nn.Linear(cfg["hidden"], 1),
    )
    held_out = [sine_task(cfg["shots"], gen) for _ in range(6)]
    learner = FirstOrderMAML(model, cfg["inner_lr"], cfg["inner_steps"], cfg["outer_lr"])
    for step in range(cfg["meta_steps"]):
        loss = learner.meta_step([sine_task(cfg["shots"], gen) for _ in range(cfg["tasks"])])
        if step % 4 == 0 or step == cfg["meta_steps"] - 1:
            print(
                f"meta step {step:3d}  query loss {loss:.4f}  "
                f"held out {learner.evaluate(held_out):.4f}"
            )


if __name__ == "__main__":
    main(CFG)
