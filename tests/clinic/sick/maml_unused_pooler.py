"""MAML on a small vision model: one of the differentiated tensors was not used in the graph."""

import torch
from torch import nn
from torch.func import functional_call

torch.manual_seed(0)


class ViT(nn.Module):
    def __init__(self, d=8):
        super().__init__()
        self.patch = nn.Linear(4, d)
        self.block = nn.Sequential(nn.Linear(d, 16), nn.GELU(), nn.Linear(16, d))
        self.pooler = nn.Linear(d, d)  # <- GS301
        self.classifier = nn.Linear(d, 3)

    def forward(self, x, pool=False):
        h = self.block(self.patch(x))
        h = torch.tanh(self.pooler(h[:, 0])) if pool else h.mean(1)
        return self.classifier(h)


class MAML:
    def __init__(self, model, lr):
        self.model, self.lr = model, lr

    def adapt(self, x, y):
        weights = dict(self.model.named_parameters())
        loss = nn.functional.cross_entropy(functional_call(self.model, weights, (x,)), y)
        grads = torch.autograd.grad(loss, list(weights.values()), create_graph=True)  # <~ GS301
        return {k: w - self.lr * g for (k, w), g in zip(weights.items(), grads, strict=False)}


model = ViT()
maml = MAML(model, lr=0.1)
meta = torch.optim.Adam(model.parameters(), lr=1e-3)
for _it in range(2):
    meta.zero_grad()
    for _ in range(2):
        x, y = torch.randn(6, 5, 4), torch.randint(0, 3, (6,))
        fast = maml.adapt(x[:3], y[:3])
        nn.functional.cross_entropy(functional_call(model, fast, (x[3:],)), y[3:]).backward()
    meta.step()
