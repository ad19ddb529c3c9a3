"""Regression with a penalty on how strongly the mean prediction reacts to the weights."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.autograd.functional import jacobian
from torch.func import functional_call


class Surrogate(nn.Module):
    def __init__(self, inputs: int = 8, width: int = 24, outputs: int = 3):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(inputs, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh()
        )
        self.head = nn.Linear(width, outputs)

    def forward(self, x):
        return self.head(self.body(x))


def sensitivity(model, x):
    params = tuple(model.parameters())

    def mean_output(*weights):
        return model(x).mean(dim=0)  # <- GS306

    parts = jacobian(mean_output, params, create_graph=True)
    return sum(part.square().sum() for part in parts)


def simulate(n: int):
    x = torch.rand(n, 8) * 2 - 1
    y = torch.stack([x[:, :3].prod(1), (3 * x[:, 3]).sin(), x[:, 4] * x[:, 5]], dim=1)
    return x, y + 0.05 * torch.randn(n, 3)


def evaluate(model, x, y) -> tuple[float, float]:
    names = [name for name, _ in model.named_parameters()]
    state = dict(zip(names, (p.detach() for p in model.parameters())))
    nudged = {name: value * 1.01 for name, value in state.items()}
    with torch.no_grad():
        plain, moved = functional_call(model, state, (x,)), functional_call(model, nudged, (x,))
    return F.mse_loss(plain, y).item(), (plain - moved).abs().mean().item()


def main():
    torch.manual_seed(6)
    x, y = simulate(256)
    val_x, val_y = simulate(64)
    model = Surrogate()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for step in range(30):
        pick = torch.randint(0, 256, (32,))
        fit = F.mse_loss(model(x[pick]), y[pick])
        loss = fit + 0.02 * sensitivity(model, x[pick])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 9:
            error, reaction = evaluate(model, val_x, val_y)
            print(
                f"step {step + 1}: fit {fit.item():.4f}  val {error:.4f}  reaction {reaction:.5f}"
            )


if __name__ == "__main__":
    main()
