import torch
from torch import nn


def validate(model, x, y):
    model.eval()
    with torch.no_grad():
        return nn.functional.mse_loss(model(x), y).item()


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
x, y = torch.randn(32, 3), torch.randn(32, 1)
lowest, best = float("inf"), None
for _ in range(4):
    model.train()
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
    error = validate(model, x[:8], y[:8])
    if error < lowest:
        lowest, best = error, model.state_dict()  # <~ GS315
model.load_state_dict(best)  # <- GS315
print(validate(model, x, y))
