"""Learns a function together with its slope, for a surrogate of an expensive simulator."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Surrogate(nn.Module):
    def __init__(self, n_in=3, hidden=30):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(n_in, hidden), nn.Softplus(), nn.Linear(hidden, hidden), nn.Softplus()
        )
        self.out = nn.Linear(hidden, 1)

    def forward(self, p):
        return self.out(self.net(p))


def simulate(p):
    value = (p.pow(2) + 2 * torch.sin(2 * p)).sum(dim=-1, keepdim=True)
    slope = 2 * p + 4 * torch.cos(2 * p)
    return value, slope


def slope_of(model, p):
    output = model(p)
    slope = torch.autograd.grad(output.sum(), p, retain_graph=True)[0]  # <- GS303
    return output, slope


class Trainer:
    def __init__(self, model, lr=3e-3, slope_weight=1.0):
        self.model = model
        self.criterion = nn.MSELoss()
        self.slope_weight = slope_weight
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)

    def run_epoch(self, loader):
        totals = [0.0, 0.0]
        for p, value, slope in loader:
            p = p.requires_grad_(True)
            output, predicted_slope = slope_of(self.model, p)
            loss_value = self.criterion(output, value)
            loss_slope = self.criterion(predicted_slope, slope)
            loss = loss_value + self.slope_weight * loss_slope
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            totals[0] += loss_value.item()
            totals[1] += loss_slope.item()
        return [total / len(loader) for total in totals]

    def validate(self, p):
        value, slope = simulate(p)
        output, predicted_slope = slope_of(self.model, p.clone().requires_grad_(True))
        return self.criterion(output, value).item(), self.criterion(predicted_slope, slope).item()


def main():
    torch.manual_seed(0)
    p = torch.rand(256, 3) * 4 - 2
    value, slope = simulate(p)
    loader = DataLoader(TensorDataset(p, value, slope), batch_size=64, shuffle=True)
    trainer = Trainer(Surrogate())
    for epoch in range(8):
        loss_value, loss_slope = trainer.run_epoch(loader)
        if epoch % 3 == 0:
            print(f"epoch {epoch} loss_value {loss_value:.4f} loss_slope {loss_slope:.4f}")
    print(
        "validation: value {:.3f} slope {:.3f}".format(*trainer.validate(torch.rand(64, 3) * 4 - 2))
    )


if __name__ == "__main__":
    main()
