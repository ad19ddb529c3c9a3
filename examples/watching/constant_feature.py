"""A loop that leaves a step out where the norm is not finite, and never says that it does.

From step 24 on a sensor is off: its column is constant, and its standard deviation zero.
"""

import sys

import torch

import gradscope


def batch(step):
    """Readings of three sensors, each with mean 0 and standard deviation 1."""
    x = torch.randn(32, 3)
    if step >= 24:
        x[:, 2] = 0
    return (x - x.mean(0)) / x.std(0)


def main():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    with gradscope.watch(model, every=2, to=sys.argv[1]):
        for step in range(40):
            x = batch(step)
            loss = (model(x) - x[:, :1]).square().mean()
            optimizer.zero_grad()
            loss.backward()
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 10)
            if norm.isfinite():
                optimizer.step()


if __name__ == "__main__":
    main()
