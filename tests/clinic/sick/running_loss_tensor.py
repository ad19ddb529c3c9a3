"""Memory rises slowly over an epoch until the process is killed."""

import torch
from torch import nn

torch.manual_seed(0)

x, y = torch.randn(80, 6), torch.randint(0, 3, (80,))
model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
criterion = nn.CrossEntropyLoss()


def train_epoch():
    running_loss = 0
    batches = 0
    for i in range(0, len(x), 8):
        optimizer.zero_grad()
        loss = criterion(model(x[i : i + 8]), y[i : i + 8])
        loss.backward()
        optimizer.step()
        running_loss += loss  # <- GS502
        batches += 1
    return running_loss / batches


for epoch in range(2):
    print(f"epoch {epoch} loss {float(train_epoch()):.4f}")
