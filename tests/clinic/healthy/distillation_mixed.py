"""Knowledge distillation: frozen teacher, a learnable temperature kept in its range."""

import argparse
import logging

import torch
import torch.nn as nn
import torch.nn.functional as F

log = logging.getLogger(__name__)


def mlp(width):
    return nn.Sequential(nn.Linear(8, width), nn.GELU(), nn.Linear(width, 4))


class Distiller(nn.Module):
    def __init__(self, teacher, student, alpha):
        super().__init__()
        self.teacher, self.student, self.alpha = (
            teacher.eval().requires_grad_(False),
            student,
            alpha,
        )
        self.temperature = nn.Parameter(torch.tensor(2.0))

    def forward(self, x, y):
        with torch.no_grad():
            t = self.teacher(x)
        s = self.student(x)
        kd = (
            F.kl_div(
                F.log_softmax(s / self.temperature, 1),
                F.softmax(t / self.temperature, 1),
                reduction="batchmean",
            )
            * self.temperature.detach() ** 2
        )
        return {
            "loss": self.alpha * kd + (1 - self.alpha) * F.cross_entropy(s, y),
            "kd": kd.detach(),
            "logits": s,
        }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--alpha", default=0.7, type=float)
    args = parser.parse_args()
    torch.manual_seed(0)
    model = Distiller(mlp(64), mlp(8), args.alpha)
    opt = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=1e-2)
    meters = {"loss": 0.0, "kd": 0.0, "acc": 0}
    for step in range(4):
        x, y = torch.randn(24, 8), torch.randint(0, 4, (24,))
        out = model(x, y)
        opt.zero_grad()
        out["loss"].backward()
        opt.step()
        with torch.no_grad():
            model.temperature.clamp_(1.0, 10.0)
        meters["loss"] += float(out["loss"])
        meters["kd"] += out["kd"]
        meters["acc"] += (out["logits"].argmax(1) == y).float().mean().item()
        log.info("step %d %s", step, meters)
    print({k: float(v) / 4 for k, v in meters.items()})


main()
