"""A policy for a cart that balances a pole, initialised by hand."""

import torch
import torch.nn.functional as F
from torch import nn


class Policy(nn.Module):
    def __init__(self, inputs=4, width=24):
        super().__init__()
        self.w1 = nn.Parameter(torch.full((inputs, width), 0.05))  # <- GS207
        self.b1 = nn.Parameter(torch.zeros(width))
        self.w2 = nn.Parameter(torch.full((width, 1), 0.05))
        self.b2 = nn.Parameter(torch.zeros(1))

    def forward(self, state):
        hidden = F.relu(state @ self.w1 + self.b1)
        return (hidden @ self.w2 + self.b2).squeeze(-1)


def main():
    torch.manual_seed(0)
    policy = Policy()
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
    for step in range(20):
        state = torch.randn(64, 4)
        push_right = (state[:, 2] + 0.5 * state[:, 3] > 0).float()
        loss = F.binary_cross_entropy_with_logits(policy(state), push_right)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 5 == 0:
            print(step, loss.item())


if __name__ == "__main__":
    main()
