"""A sparse autoencoder on activations: unit-norm decoder, revival of features that stay silent."""

from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class SaeConfig:
    inputs: int = 12
    features: int = 32
    k: int = 4
    steps: int = 30
    batch: int = 64
    lr: float = 5e-3
    revive_every: int = 10


class SparseAutoencoder(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.k = config.k
        self.pre_bias = nn.Parameter(torch.zeros(config.inputs))
        self.encoder = nn.Linear(config.inputs, config.features)
        self.decoder = nn.Linear(config.features, config.inputs, bias=False)
        self.decoder.weight.data = nn.functional.normalize(self.decoder.weight.data, dim=0)
        self.encoder.weight.data = self.decoder.weight.data.t().clone()
        self.encoder.bias.data.zero_()

    def forward(self, x):
        scores = torch.relu(self.encoder(x - self.pre_bias))
        values, places = scores.topk(self.k, dim=-1)
        codes = torch.zeros_like(scores).scatter(-1, places, values)
        return self.decoder(codes) + self.pre_bias, codes

    @torch.no_grad()
    def project_decoder_gradient(self):
        weight, grad = self.decoder.weight, self.decoder.weight.grad
        grad -= (grad * weight).sum(0, keepdim=True) * weight

    @torch.no_grad()
    def renormalise(self):
        self.decoder.weight.div_(self.decoder.weight.norm(dim=0, keepdim=True))

    @torch.no_grad()
    def revive(self, silent, batch, optimizer):
        if not silent.any():
            return 0
        recon, _ = self(batch)
        error = (batch - recon).pow(2).sum(1)
        pick = torch.multinomial(error, int(silent.sum()), replacement=True)
        fresh = nn.functional.normalize(batch[pick] - self.pre_bias, dim=1)
        self.encoder.weight[silent] = 0.2 * fresh
        self.encoder.bias[silent] = 0.0
        self.decoder.weight[:, silent] = fresh.t()
        for p, index in ((self.encoder.weight, silent), (self.encoder.bias, silent)):
            for value in (optimizer.state[p]["exp_avg"], optimizer.state[p]["exp_avg_sq"]):
                value[index] = 0.0
        return int(silent.sum())


def main():
    config = SaeConfig()
    torch.manual_seed(0)
    truth = nn.functional.normalize(torch.randn(24, config.inputs), dim=1)
    model = SparseAutoencoder(config)
    optimizer = torch.optim.Adam(model.parameters(), lr=config.lr)
    fired = torch.zeros(config.features, dtype=torch.bool)
    for step in range(1, config.steps + 1):
        active = (torch.rand(config.batch, 24) < 0.12) * torch.rand(config.batch, 24)
        x = active @ truth
        recon, codes = model(x)
        loss = (recon - x).pow(2).sum(-1).mean()
        optimizer.zero_grad()
        loss.backward()
        model.project_decoder_gradient()
        optimizer.step()
        model.renormalise()
        fired |= (codes > 0).any(0)
        if step % config.revive_every == 0:
            revived = model.revive(~fired, x, optimizer)
            fired.zero_()
            print(f"step {step} loss {loss.item():.4f} revived {revived}")


if __name__ == "__main__":
    main()
