"""Adaptive sharpness-aware minimisation as an optimizer that takes a closure."""

import torch
import torch.nn.functional as F
from torch import nn


class SAM(torch.optim.Optimizer):
    def __init__(self, params, base_optimizer, rho=0.5, adaptive=True, **kwargs):
        super().__init__(params, dict(rho=rho, adaptive=adaptive, **kwargs))
        self.base_optimizer = base_optimizer(self.param_groups, **kwargs)
        self.param_groups = self.base_optimizer.param_groups

    @torch.no_grad()
    def ascend(self):
        norms = []
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    scale = p.abs() if group["adaptive"] else 1.0
                    norms.append((scale * p.grad).norm())
        norm = torch.stack(norms).norm()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                self.state[p]["kept"] = p.data.clone()
                scale = p.pow(2) if group["adaptive"] else 1.0
                p.add_(scale * p.grad * (group["rho"] / (norm + 1e-12)))

    @torch.no_grad()
    def descend(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.data = self.state[p]["kept"]
        self.base_optimizer.step()

    def step(self, closure):
        closure = torch.enable_grad()(closure)
        self.ascend()
        self.zero_grad()
        closure()
        self.descend()
        self.zero_grad()


def freeze_running_stats(model):
    for module in model.modules():
        if isinstance(module, nn.BatchNorm1d):
            module.backup_momentum = module.momentum
            module.momentum = 0.0


def thaw_running_stats(model):
    for module in model.modules():
        if isinstance(module, nn.BatchNorm1d) and hasattr(module, "backup_momentum"):
            module.momentum = module.backup_momentum


def build_model():
    return nn.Sequential(
        nn.Linear(10, 32, bias=False),
        nn.BatchNorm1d(32),
        nn.ReLU(),
        nn.Linear(32, 16),
        nn.ReLU(),
        nn.Linear(16, 4),
    )


def train_epoch(model, optimizer, x, y, batch=40):
    total = 0.0
    for ids in torch.randperm(len(x)).split(batch):
        thaw_running_stats(model)
        loss = F.cross_entropy(model(x[ids]), y[ids], label_smoothing=0.1)
        loss.backward()

        def second_pass(ids=ids):
            freeze_running_stats(model)
            perturbed = F.cross_entropy(model(x[ids]), y[ids], label_smoothing=0.1)
            perturbed.backward()
            return perturbed

        optimizer.step(second_pass)
        total += loss.item() * len(ids)
    thaw_running_stats(model)
    return total / len(x)


def main():
    torch.manual_seed(0)
    centres = 1.2 * torch.randn(4, 10)
    y = torch.randint(0, 4, (200,))
    x = centres[y] + torch.randn(200, 10)
    model = build_model()
    optimizer = SAM(model.parameters(), torch.optim.SGD, lr=0.1, momentum=0.9, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer.base_optimizer, T_max=7)
    for epoch in range(7):
        loss = train_epoch(model, optimizer, x, y)
        scheduler.step()
        model.eval()
        with torch.no_grad():
            accuracy = (model(x).argmax(1) == y).float().mean().item()
        model.train()
        print(f"epoch {epoch} loss {loss:.3f} accuracy {accuracy:.2f}")


if __name__ == "__main__":
    main()
