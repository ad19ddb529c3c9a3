"""Multi-task state estimation for a planar arm: pose, torque and contact from joint readings."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

from surgery import flat_grads, project_conflicting, write_grads


def get_args():
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=8)
    p.add_argument("--batch_size", type=int, default=64)
    p.add_argument("--steps", type=int, default=40)
    p.add_argument("--lr", type=float, default=4e-3)
    return p.parse_args()


class ArmNet(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Linear(6, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()
        )
        self.heads = nn.ModuleDict(
            {
                "pose": nn.Linear(width, 2),
                "torque": nn.Linear(width, 1),
                "contact": nn.Linear(width, 1),
            }
        )

    def forward(self, x):
        h = self.trunk(x)
        return {name: head(h) for name, head in self.heads.items()}


def sample(n, gen):
    q = 2 * torch.rand(n, 3, generator=gen) - 1
    dq = torch.randn(n, 3, generator=gen)
    angles = q.cumsum(dim=1)
    pose = torch.stack([angles.cos().sum(1), angles.sin().sum(1)], dim=1)
    torque = 0.5 * (dq * q).sum(1, keepdim=True) - angles.sin().sum(1, keepdim=True)
    contact = (pose[:, 1:] < -0.2).float()
    return torch.cat([q, dq], dim=1), {"pose": pose, "torque": torque, "contact": contact}


def task_losses(out, target):
    return {
        "pose": F.mse_loss(out["pose"], target["pose"]),
        "torque": F.mse_loss(out["torque"], target["torque"]),
        "contact": F.binary_cross_entropy_with_logits(out["contact"], target["contact"]),
    }


def main():
    args = get_args()
    torch.manual_seed(args.seed)
    gen = torch.Generator().manual_seed(args.seed)
    net = ArmNet()
    params = list(net.parameters())
    optimizer = torch.optim.Adam(params, lr=args.lr)
    for step in range(1, args.steps + 1):
        x, target = sample(args.batch_size, gen)
        losses = task_losses(net(x), target)
        names = list(losses)
        grads = [flat_grads(losses[k], params, retain_graph=k != names[-1]) for k in names]
        write_grads(params, project_conflicting(grads, gen))
        optimizer.step()
        if step % 10 == 0:
            parts = "  ".join(f"{k} {v.item():.3f}" for k, v in losses.items())
            print(f"step {step:4d}  total {sum(v.item() for v in losses.values()):.3f}  {parts}")


if __name__ == "__main__":
    main()
