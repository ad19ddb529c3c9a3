"""RuntimeError: element 0 of tensors does not require grad. The model clearly has parameters."""

import torch
from torch import nn

torch.manual_seed(0)

x_train = torch.randn(90, 2)
y_train = (x_train[:, 0] * x_train[:, 1] > 0).long() + (x_train[:, 0] > 1).long()


class Spiral(nn.Module):
    def __init__(self):
        super().__init__()
        self.stack = nn.Sequential(nn.Linear(2, 24), nn.Tanh(), nn.Linear(24, 3))

    def forward(self, x):
        return self.stack(x)


model = Spiral()
loss_fn = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

for epoch in range(3):
    logits = model(x_train)
    predicted = torch.softmax(logits, dim=1).argmax(dim=1)  # <- GS303
    loss = loss_fn(predicted.float(), y_train.float())
    accuracy = (predicted == y_train).float().mean().item()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.4f} accuracy {accuracy:.2f}")
