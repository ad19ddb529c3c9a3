"""The first epoch trains. After the first validation, backward says nothing requires grad."""

import torch
from torch import nn

torch.manual_seed(0)

model = nn.Sequential(nn.Linear(5, 12), nn.Tanh(), nn.Linear(12, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
x, y = torch.randn(60, 5), torch.randn(60, 1)
train_x, train_y, test_x, test_y = x[:40], y[:40], x[40:], y[40:]


def evaluate():
    model.eval()
    torch.set_grad_enabled(False)  # <- GS303
    error = nn.functional.mse_loss(model(test_x), test_y)
    model.train()
    return error.item()


def train_epoch():
    optimizer.zero_grad()
    prediction = model(train_x)  # <~ GS303
    loss = nn.functional.mse_loss(prediction, train_y)
    loss.backward()
    optimizer.step()
    return loss.item()


for epoch in range(3):
    training = train_epoch()
    print(f"epoch {epoch} loss {training:.4f} test {evaluate():.4f}")
