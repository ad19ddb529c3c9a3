"""BYOL: the online network predicts a slowly moving copy of itself."""

import copy
import math

import torch
import torch.nn.functional as F
from torch import nn


def mlp(n_in, hidden, n_out):
    return nn.Sequential(
        nn.Linear(n_in, hidden, bias=False),
        nn.BatchNorm1d(hidden),
        nn.ReLU(inplace=True),
        nn.Linear(hidden, n_out),
    )


class BYOL(nn.Module):
    def __init__(self, n_in=16, hidden=48, features=24, projection=12, base_tau=0.9):
        super().__init__()
        self.encoder = nn.Sequential(mlp(n_in, hidden, features), nn.ReLU())
        self.projector = mlp(features, hidden, projection)
        self.predictor = mlp(projection, hidden, projection)
        self.target_encoder = copy.deepcopy(self.encoder)
        self.target_projector = copy.deepcopy(self.projector)
        for p in self.target_parameters():
            p.requires_grad_(False)
        self.base_tau = base_tau
        self.tau = base_tau

    def target_parameters(self):
        yield from self.target_encoder.parameters()
        yield from self.target_projector.parameters()

    def online_parameters(self):
        yield from self.encoder.parameters()
        yield from self.projector.parameters()

    @torch.no_grad()
    def momentum_update(self, progress):
        self.tau = 1 - (1 - self.base_tau) * (math.cos(math.pi * progress) + 1) / 2
        for p, target in zip(self.online_parameters(), self.target_parameters(), strict=True):
            target.lerp_(p, 1 - self.tau)

    def forward(self, first, second):
        p1 = self.predictor(self.projector(self.encoder(first)))
        p2 = self.predictor(self.projector(self.encoder(second)))
        with torch.no_grad():
            t1 = self.target_projector(self.target_encoder(first))
            t2 = self.target_projector(self.target_encoder(second))
        return (regression(p1, t2) + regression(p2, t1)).mean()


def regression(online, target):
    online = F.normalize(online, dim=-1)
    target = F.normalize(target, dim=-1)
    return 2 - 2 * (online * target).sum(dim=-1)


def augment(x):
    keep = (torch.rand_like(x) > 0.15).float()
    gain = 1 + 0.2 * torch.randn(len(x), 1)
    return gain * x * keep + 0.2 * torch.randn_like(x)


@torch.no_grad()
def neighbour_accuracy(model, x, labels):
    model.eval()
    z = F.normalize(model.encoder(x), dim=1)
    model.train()
    similarity = z @ z.T
    similarity.fill_diagonal_(-2.0)
    spread = z.std(dim=0).mean().item()
    return (labels[similarity.argmax(dim=1)] == labels).float().mean().item(), spread


def main():
    torch.manual_seed(0)
    labels = torch.randint(0, 5, (240,))
    x = (1.5 * torch.randn(5, 16))[labels] + torch.randn(240, 16)
    model = BYOL()
    trainable = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(trainable, lr=0.1, momentum=0.9, weight_decay=1e-4)
    epochs, batch = 6, 40
    total, step = epochs * 6, 0
    for epoch in range(epochs):
        running = 0.0
        for ids in torch.randperm(len(x)).split(batch):
            loss = model(augment(x[ids]), augment(x[ids]))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            model.momentum_update(step / total)
            running += loss.item()
        accuracy, spread = neighbour_accuracy(model, x, labels)
        print(
            f"epoch {epoch} loss {running / 6:.3f} tau {model.tau:.3f} "
            f"1-nn {accuracy:.2f} spread {spread:.3f}"
        )


if __name__ == "__main__":
    main()
