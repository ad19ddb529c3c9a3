"""Lottery tickets: train, prune by magnitude, rewind to the first weights, train what is left."""

import copy

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import prune


class WideNet(nn.Module):
    """A wide ReLU net on mostly-zero inputs; the negative bias keeps much of it quiet."""

    def __init__(self, n_in=64, width=96, classes=4):
        super().__init__()
        self.first = nn.Linear(n_in, width)
        self.second = nn.Linear(width, width)
        self.third = nn.Linear(width, classes)
        for layer in (self.first, self.second):
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
        nn.init.constant_(self.first.bias, -0.25)

    def hidden(self, x):
        first = F.relu(self.first(x))
        return first, F.relu(self.second(first))

    def forward(self, x):
        return self.third(self.hidden(x)[1])


def prunable(model):
    return [(model.first, "weight"), (model.second, "weight")]


def sparse_words(n, topics):
    label = torch.randint(0, len(topics), (n,))
    x = torch.zeros(n, topics.shape[1])
    words = torch.multinomial(topics[label], 8, replacement=True)
    x.scatter_add_(1, words, torch.ones(n, 8))
    return x.sqrt(), label


def train(model, x, y, epochs, name):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[2], gamma=0.3)
    for epoch in range(epochs):
        total = 0.0
        for ids in torch.randperm(len(x)).split(40):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x[ids]), y[ids])
            loss.backward()
            optimizer.step()
            total += loss.item() * len(ids)
        scheduler.step()
        print(f"{name} epoch {epoch} loss {total / len(x):.3f}")


def rewind(model, initial):
    """Put the first weights back under the masks, which stay."""
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.copy_(initial[name.removesuffix("_orig")])


@torch.no_grad()
def report(model, x, y):
    model.eval()
    first, second = model.hidden(x)
    quiet = [(h <= 0).float().mean().item() for h in (first, second)]
    accuracy = (model(x).argmax(dim=1) == y).float().mean().item()
    model.train()
    kept = [(getattr(module, name) != 0).float().mean().item() for module, name in prunable(model)]
    print(
        f"accuracy {accuracy:.2f} silent activations {quiet[0]:.2f} {quiet[1]:.2f} "
        f"weights kept {kept[0]:.2f} {kept[1]:.2f}"
    )


def main():
    torch.manual_seed(0)
    topics = torch.rand(4, 64).pow(6) + 1e-3
    x, y = sparse_words(200, topics)
    held_out = sparse_words(150, topics)
    model = WideNet()
    initial = copy.deepcopy(model.state_dict())
    train(model, x, y, 3, "dense")
    report(model, *held_out)

    prune.global_unstructured(prunable(model), pruning_method=prune.L1Unstructured, amount=0.7)
    rewind(model, initial)
    train(model, x, y, 3, "ticket")
    report(model, *held_out)
    for module, name in prunable(model):
        prune.remove(module, name)
    report(model, *held_out)


if __name__ == "__main__":
    main()
