"""FixMatch in one forward pass: the weakly augmented third of the batch gives only labels."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
words = 60
model = nn.Linear(words, 10)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for _ in range(5):
    bags = (torch.rand(16, words) < 0.03).float()
    weak = (torch.rand(16, words) < 0.03).float()
    strong = weak * (torch.rand_like(weak) > 0.5)
    labels = torch.randint(0, 10, (16,))
    seen, easy, hard = model(torch.cat([bags, weak, strong])).chunk(3)
    sure, guess = torch.softmax(easy.detach(), dim=1).max(1)
    consistency = F.cross_entropy(hard, guess, reduction="none") * (sure > 0.1)
    loss = F.cross_entropy(seen, labels) + consistency.mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
