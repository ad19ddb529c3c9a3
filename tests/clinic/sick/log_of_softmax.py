"""The loss prints inf in the very first step. The probabilities look fine: they sum to one."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class Classifier(nn.Module):
    def __init__(self, features, classes):
        super().__init__()
        self.hidden = nn.Linear(features, 32)
        self.out = nn.Linear(32, classes)

    def forward(self, x):
        h = torch.tanh(self.hidden(x))
        return F.softmax(60 * self.out(h), dim=1)


def nll(probabilities, target):
    log_probabilities = torch.log(probabilities)  # <- GS101
    return -log_probabilities[torch.arange(len(target)), target].mean()


x = torch.randn(256, 8) * 4
y = torch.randint(0, 6, (256,))
model = Classifier(8, 6)
optimizer = torch.optim.SGD(model.parameters(), lr=0.001)

for step in range(5):
    loss = nll(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4f}")
