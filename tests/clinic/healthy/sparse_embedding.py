"""A large embedding with sparse gradients and an optimizer of its own."""

import torch
from torch import nn

torch.manual_seed(0)


class Recommender(nn.Module):
    def __init__(self):
        super().__init__()
        self.users = nn.Embedding(1000, 8, sparse=True)
        self.items = nn.Embedding(2000, 8, sparse=True)
        self.bias = nn.Parameter(torch.zeros(1))

    def forward(self, user, item):
        return (self.users(user) * self.items(item)).sum(dim=1) + self.bias


user, item = torch.randint(0, 1000, (64,)), torch.randint(0, 2000, (64,))
rating = torch.randn(64)
model = Recommender()
sparse = torch.optim.SparseAdam([model.users.weight, model.items.weight], lr=1e-2)
dense = torch.optim.Adam([model.bias], lr=1e-2)
for step in range(4):
    loss = nn.functional.mse_loss(model(user, item), rating)
    for optimizer in (sparse, dense):
        optimizer.zero_grad()
    loss.backward()
    for optimizer in (sparse, dense):
        optimizer.step()
    print(step, loss.item())
