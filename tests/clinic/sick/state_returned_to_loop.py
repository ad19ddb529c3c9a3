import torch
from torch import nn


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.GRU(2, 8, batch_first=True)
        self.head = nn.Linear(8, 2)

    def forward(self, window, state):
        encoded, after = self.encoder(window, state)  # <- GS000
        return self.head(encoded), after


def train(model, series, length=5):
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    hidden = torch.zeros(1, series.shape[0], 8)
    for start in range(0, series.shape[1] - length, length):
        window = series[:, start : start + length]
        following = series[:, start + 1 : start + length + 1]
        predicted, hidden = model(window, hidden)  # <~ GS000
        loss = nn.functional.smooth_l1_loss(predicted, following)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


torch.manual_seed(0)
train(Forecaster(), torch.randn(3, 26, 2).cumsum(dim=1))
