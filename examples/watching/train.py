"""A training that spikes: at step 40 a batch comes whose targets were not normalised."""

import torch
from torch import nn

import gradscope


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.linear = nn.Linear(width, width)

    def forward(self, x):
        return x + torch.tanh(self.linear(self.norm(x)))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(8, 32)
        self.blocks = nn.ModuleList(Block(32) for _ in range(3))
        self.head = nn.Linear(32, 1)

    def forward(self, x):
        x = self.embed(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def show(row):
    update = f"{row.update:.1e}"
    print(
        f"step {row.step:2}   norm {row.norm:7.1f}   applied {row.applied:4.1f}   update {update}"
    )


def main():
    torch.manual_seed(0)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-2)
    with gradscope.watch(net, every=10, to=show):
        for step in range(60):
            x = torch.randn(64, 8)
            targets = x.sum(1, keepdim=True) * (100 if step == 40 else 1)
            loss = nn.functional.mse_loss(net(x), targets)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 10.0)
            optimizer.step()


if __name__ == "__main__":
    main()
