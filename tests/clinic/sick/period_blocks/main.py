import torch
from model import PeriodNet
from torch import nn


class SensorData:
    def __init__(self, seq_len, pred_len, n_sensors=3, n=300):
        t = torch.arange(n).unsqueeze(1)
        speed = torch.tensor([[6.0, 8.0, 12.0]])
        self.values = 0.5 * torch.sin(6.2832 * t / speed) + 0.05 * torch.randn(n, n_sensors)
        self.seq_len, self.pred_len = seq_len, pred_len

    def batch(self, size):
        total = self.seq_len + self.pred_len
        starts = torch.randint(len(self.values) - total, (size,))
        rows = torch.stack([self.values[s : s + total] for s in starts.tolist()])
        return rows[:, : self.seq_len], rows[:, self.seq_len :]


def main():
    torch.manual_seed(13)
    data = SensorData(seq_len=24, pred_len=6)
    model = PeriodNet(data.seq_len, data.pred_len, n_sensors=3)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    criterion = nn.MSELoss()
    for step in range(10):
        batch_x, batch_y = data.batch(16)
        optimizer.zero_grad()
        loss = criterion(model(batch_x), batch_y)
        loss.backward()
        optimizer.step()
        if step % 3 == 0:
            print(f"iters {step} | loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
