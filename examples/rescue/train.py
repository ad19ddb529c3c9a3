"""A training in which three things are wrong at once; docs/rescue.md finds them.

python examples/rescue/train.py                    # the loss becomes infinite
gradscope doctor examples/rescue/train.py
python examples/rescue/train.py --fix nan cut order
"""

import argparse

import torch
from torch import nn


class Reader(nn.Module):
    """Reads a sequence with a recurrent cell and classifies it."""

    def __init__(self, fixed, size=16, classes=4):
        super().__init__()
        self.fixed = fixed
        self.embed = nn.Linear(3, size)
        self.cell = nn.GRUCell(size, size)
        self.head = nn.Linear(size, classes)

    def forward(self, sequence):
        state = torch.zeros(sequence.shape[1], self.cell.hidden_size)
        for item in sequence:
            features = torch.tanh(self.embed(item))
            if "cut" not in self.fixed:
                features = torch.as_tensor(features.detach().numpy())
            state = self.cell(features, state)
        return self.head(state).softmax(-1)


def likelihood(probabilities, labels, fixed):
    chosen = probabilities.gather(1, labels[:, None]).squeeze(1)
    if "nan" in fixed:
        chosen = chosen.clamp(min=1e-6)
    return -chosen.log().mean()


def batch(size=64, length=6):
    sequence = torch.randn(length, size, 3)
    labels = (sequence.sum(0).argmax(-1) + (sequence[-1, :, 0] > 1)).clamp(max=3)
    return sequence, labels


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--fix", nargs="*", default=[], choices=("nan", "cut", "order"))
    options = parser.parse_args()
    torch.manual_seed(0)
    model = Reader(options.fix)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-2)
    for step in range(options.steps):
        sequence, labels = batch()
        if step == 20 and "nan" not in options.fix:
            model.head.weight.data.mul_(1e3)  # as after loading weights of another scale
        loss = likelihood(model(sequence), labels, options.fix)
        if "order" in options.fix:
            optimizer.zero_grad()
            loss.backward()
        else:
            loss.backward()
            optimizer.zero_grad()
        optimizer.step()
        if step % 20 == 19:
            print(f"step {step + 1}  loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
