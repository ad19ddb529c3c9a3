"""Stop-gradients that are meant: straight-through, commitment, predictor against target, a probe on
features, a norm taken as a constant, a loss that reports another value."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(8, 12)
        self.codes = nn.Embedding(16, 4)
        self.predictor, self.probe = nn.Linear(4, 4), nn.Linear(4, 3)
        self.decoder = nn.Linear(4, 8)

    def forward(self, x, labels):
        z, view, gate = self.encoder(x).chunk(3, dim=-1)
        z = z / z.norm(dim=1, keepdim=True).detach() * torch.sigmoid(gate)
        code = self.codes(torch.cdist(z, self.codes.weight).argmin(1))
        quantised = z + (code - z).detach()
        reconstruction = F.mse_loss(self.decoder(quantised), x)
        commitment = F.mse_loss(code, z.detach()) + 0.25 * F.mse_loss(z, code.detach())
        similarity = F.cosine_similarity(self.predictor(z), view.detach()).mean()
        similarity = similarity + F.cosine_similarity(self.predictor(view), z.detach()).mean()
        probe = F.cross_entropy(self.probe(z.detach()), labels)
        soft = torch.sigmoid(view)
        hard = (view > 0).float() + soft - soft.detach()
        return reconstruction + commitment - 0.5 * similarity + probe + 0.1 * hard.mean()


model = Model()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(5):
    x = torch.randn(32, 8)
    labels = (x[:, 0] > 0).long()
    loss = model(x, labels)
    with torch.no_grad():
        accuracy = (model.probe(model.encoder(x)[:, :4]).argmax(1) == labels).float().mean()
    optimizer.zero_grad()
    (loss + (accuracy - loss).detach()).backward()
    optimizer.step()
