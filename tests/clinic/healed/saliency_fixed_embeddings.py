"""Gradients with respect to premise and hypothesis embeddings for an attack on an NLI model."""

from types import SimpleNamespace

import torch
from torch import autograd, nn

torch.manual_seed(0)


class SNLI(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.embed = nn.Embedding(config.n_embed, config.d)
        self.encoder = nn.LSTM(config.d, 8, batch_first=True)
        self.out = nn.Linear(16, 3)

    def forward(self, premise, hypothesis):
        prem_embed, hypo_embed = self.embed(premise), self.embed(hypothesis)
        inputs = prem_embed, hypo_embed
        if self.config.fix_emb:
            prem_embed = prem_embed.detach()
            hypo_embed = hypo_embed.detach()
        a, b = self.encoder(prem_embed)[0][:, -1], self.encoder(hypo_embed)[0][:, -1]
        return self.out(torch.cat([a, b], 1)), inputs


def saliency(model, premise, hypothesis, label):
    scores, embeddings = model(premise, hypothesis)
    loss = nn.functional.cross_entropy(scores, label)
    return autograd.grad(loss, embeddings)


config = SimpleNamespace(n_embed=40, d=6, fix_emb=False)
model = SNLI(config)
grads = saliency(
    model, torch.randint(0, 40, (4, 5)), torch.randint(0, 40, (4, 5)), torch.randint(0, 3, (4,))
)
print([g.norm().item() for g in grads])
