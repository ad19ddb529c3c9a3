"""In-domain inversion: is optimizer_D.zero_grad() absent on purpose?"""

import itertools

import torch
import torch.nn.functional as F
from torch import nn


def build(sizes, act):
    layers = []
    for a, b in itertools.pairwise(sizes):
        layers += [nn.Linear(a, b), act()]
    return nn.Sequential(*layers[:-1])


class Loop:
    def __init__(self):
        self.E, self.G, self.D = (
            build((12, 20, 4), nn.ReLU),
            build((4, 20, 12), nn.ReLU),
            build((12, 20, 1), nn.ReLU),
        )
        self.G.requires_grad_(False)
        self.optimizer_E = torch.optim.Adam(self.E.parameters(), lr=1e-3)
        self.optimizer_D = torch.optim.Adam(self.D.parameters(), lr=1e-3)

    def D_logistic(self, real):
        fake = self.G(self.E(real)).detach()
        return F.softplus(self.D(fake)).mean() + F.softplus(-self.D(real)).mean()

    def E_loss(self, real):
        for p in self.D.parameters():
            p.requires_grad = False
        fake = self.G(self.E(real))
        loss = F.mse_loss(fake, real) + 0.1 * F.softplus(-self.D(fake)).mean()
        for p in self.D.parameters():
            p.requires_grad = True
        return loss

    def run(self, steps):
        for step in range(steps):
            real = torch.randn(16, 12)
            E_loss = self.E_loss(real)
            self.optimizer_E.zero_grad()
            E_loss.backward()
            self.optimizer_E.step()

            D_loss = self.D_logistic(real)
            self.optimizer_D.zero_grad()
            D_loss.backward()
            self.optimizer_D.step()
            print(step, E_loss.item(), D_loss.item())


torch.manual_seed(0)
Loop().run(5)
