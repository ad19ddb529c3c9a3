"""Readings of a sensor, some of which are missing, go into a recurrent layer as they are."""

import torch
from torch import nn

torch.manual_seed(0)


class Readings(torch.utils.data.Dataset):
    def __init__(self, days, hours):
        time = torch.arange(hours) / hours
        phases = torch.rand(days, 1, 3)
        self.values = torch.sin(6.28 * (time[None, :, None] + phases))
        self.values[torch.rand(days, hours, 3) < 0.01] = float("nan")  # <- GS105
        self.labels = phases.mean(dim=(1, 2))

    def __len__(self):
        return len(self.values)

    def __getitem__(self, index):
        return self.values[index], self.labels[index]


class Forecast(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.rnn = nn.GRU(3, hidden, num_layers=2, batch_first=True)
        self.head = nn.Linear(hidden, 1)

    def forward(self, series):
        states, _ = self.rnn(series)
        return self.head(states[:, -1]).squeeze(-1)


def main():
    loader = torch.utils.data.DataLoader(Readings(64, 24), batch_size=16)
    model = Forecast(hidden=10)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for series, label in loader:  # <~ GS105
        loss = nn.functional.mse_loss(model(series), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())


main()
