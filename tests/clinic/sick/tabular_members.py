"""A parameter-efficient ensemble of MLPs for tables with heavy-tailed targets."""

import math

import torch
import torch.nn.functional as F
from torch import nn

CONFIG = {
    "members": 4,
    "width": 32,
    "batch_size": 32,
    "epochs": 4,
    "lr": 0.02,
    "gradient_clipping_norm": 1.0,
}


class MemberLinear(nn.Module):
    """A shared weight with a scale on each side for every member."""

    def __init__(self, inputs, outputs, members):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(outputs, inputs) / math.sqrt(inputs))
        self.r = nn.Parameter(torch.randn(members, inputs).sign())
        self.s = nn.Parameter(torch.ones(members, outputs))
        self.bias = nn.Parameter(torch.zeros(members, outputs))

    def forward(self, x):
        return (x * self.r) @ self.weight.t() * self.s + self.bias


class MemberMlp(nn.Module):
    def __init__(self, features, width, members):
        super().__init__()
        self.members = members
        self.first = MemberLinear(features, width, members)
        self.second = MemberLinear(width, width, members)
        self.head = MemberLinear(width, 1, members)

    def forward(self, x):
        x = x.unsqueeze(1).expand(-1, self.members, -1)
        x = F.relu(self.first(x))
        x = F.relu(self.second(x))
        return self.head(x).squeeze(-1)


def make_table(rows=256, features=10):
    x = torch.randn(rows, features)
    y = x[:, 0] * 2 + x[:, 1].sin() * 3
    outliers = torch.rand(rows) < 0.05
    y[outliers] = y[outliers] * 40
    return x, y


@torch.no_grad()
def evaluate(model, x, y):
    model.eval()
    prediction = model(x).mean(1)
    model.train()
    return (prediction - y).abs().median().item()


def main():
    torch.manual_seed(0)
    x, y = make_table()
    model = MemberMlp(x.shape[1], CONFIG["width"], CONFIG["members"])
    optimizer = torch.optim.SGD(model.parameters(), lr=CONFIG["lr"])
    clip = CONFIG["gradient_clipping_norm"]
    for epoch in range(CONFIG["epochs"]):
        for index in torch.randperm(len(x)).split(CONFIG["batch_size"]):
            optimizer.zero_grad()
            output = model(x[index])
            loss = F.mse_loss(output, y[index].unsqueeze(1).expand_as(output))
            if clip is not None:
                nn.utils.clip_grad_norm_(model.parameters(), clip)  # <- GS506
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.3f} median error {evaluate(model, x, y):.3f}")


if __name__ == "__main__":
    main()
