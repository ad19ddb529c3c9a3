"""Gradient surgery (PCGrad): three tasks on one trunk, conflicting gradients projected."""

import random

import torch
import torch.nn.functional as F
from torch import nn


class MultiTaskNet(nn.Module):
    def __init__(self, n_in=8, hidden=32):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Linear(n_in, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh()
        )
        self.depth_head = nn.Linear(hidden, 1)
        self.normal_head = nn.Linear(hidden, 3)
        self.label_head = nn.Linear(hidden, 4)

    def forward(self, x):
        z = self.trunk(x)
        return self.depth_head(z).squeeze(-1), self.normal_head(z), self.label_head(z)


class PCGrad:
    def __init__(self, optimizer):
        self.optimizer = optimizer
        self.params = [p for group in optimizer.param_groups for p in group["params"]]

    def _gather(self, loss):
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward(retain_graph=True)
        flat, present = [], []
        for p in self.params:
            present.append(torch.full((p.numel(),), p.grad is not None))
            flat.append(torch.zeros(p.numel()) if p.grad is None else p.grad.flatten().clone())
        return torch.cat(flat), torch.cat(present)

    def step(self, losses):
        gathered = [self._gather(loss) for loss in losses]
        grads = [g for g, _ in gathered]
        shared = torch.stack([present for _, present in gathered]).all(dim=0)
        projected, conflicts = [], 0
        for i, own in enumerate(grads):
            own = own.clone()
            others = [g for j, g in enumerate(grads) if j != i]
            random.shuffle(others)
            for other in others:
                dot = torch.dot(own[shared], other[shared])
                if dot < 0:
                    conflicts += 1
                    own[shared] -= dot / other[shared].pow(2).sum() * other[shared]
            projected.append(own)
        merged = torch.stack(projected).sum(dim=0)
        merged[shared] /= len(losses)
        offset = 0
        for p in self.params:
            p.grad = merged[offset : offset + p.numel()].view_as(p)
            offset += p.numel()
        self.optimizer.step()
        return conflicts


def make_data(n=192):
    x = torch.randn(n, 8)
    depth = torch.sin(x[:, 0]) + 0.3 * x[:, 1]
    normal = F.normalize(torch.stack([x[:, 2], -x[:, 0], torch.ones(n)], dim=1), dim=1)
    label = (2 * (x[:, 3] > 0).long() + (x[:, 0] < 0).long()).long()
    return x, depth, normal, label


def main():
    torch.manual_seed(4)
    random.seed(4)
    x, depth, normal, label = make_data()
    model = MultiTaskNet()
    surgeon = PCGrad(torch.optim.Adam(model.parameters(), lr=0.01))
    for epoch in range(6):
        history, conflicts = [], 0
        for ids in torch.randperm(len(x)).split(32):
            out_depth, out_normal, out_label = model(x[ids])
            losses = [
                F.smooth_l1_loss(out_depth, depth[ids]),
                (1 - F.cosine_similarity(out_normal, normal[ids])).mean(),
                F.cross_entropy(out_label, label[ids]),
            ]
            conflicts += surgeon.step(losses)
            history.append(torch.stack([loss.detach() for loss in losses]))
        means = torch.stack(history).mean(dim=0)
        print(f"epoch {epoch} " + " ".join(f"{v:.3f}" for v in means) + f" conflicts {conflicts}")


if __name__ == "__main__":
    main()
