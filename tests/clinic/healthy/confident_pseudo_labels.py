"""Semi-supervised training: only confident guesses count, and at first there are none."""

import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

CONFIG = {"threshold": 0.9, "weight": 1.0, "decay": 0.9, "lr": 0.03, "steps": 36}


class Classifier(nn.Module):
    def __init__(self, inputs=16, width=48, classes=3):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(inputs, width), nn.BatchNorm1d(width), nn.ReLU())
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        return self.head(self.body(x))


class Average:
    def __init__(self, model, decay: float):
        self.decay, self.shadow = decay, copy.deepcopy(model).requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        for slow, fast in zip(self.shadow.parameters(), model.parameters()):
            slow.mul_(self.decay).add_(fast, alpha=1 - self.decay)
        for slow, fast in zip(self.shadow.buffers(), model.buffers()):
            slow.copy_(fast)


def weak(x):
    return x + 0.1 * torch.randn_like(x)


def strong(x):
    return (x + 0.4 * torch.randn_like(x)) * (torch.rand_like(x) > 0.15)


def unlabelled_loss(model, x):
    with torch.no_grad():
        guess = model(weak(x)).softmax(dim=-1)
        confidence, label = guess.max(dim=-1)
        mask = (confidence >= CONFIG["threshold"]).float()
    each = F.cross_entropy(model(strong(x)), label, reduction="none")
    return (each * mask).mean(), mask.mean().item()


def main():
    torch.manual_seed(41)
    centres = torch.randn(3, 16)
    kind = torch.randint(0, 3, (640,))
    data = centres[kind] + 0.8 * torch.randn(640, 16)
    few, rest, val = slice(0, 48), slice(48, 512), slice(512, 640)
    model = Classifier()
    average = Average(model, CONFIG["decay"])
    optimizer = torch.optim.SGD(model.parameters(), lr=CONFIG["lr"], momentum=0.9, nesterov=True)
    for step in range(CONFIG["steps"]):
        labelled = torch.randint(0, 48, (16,))
        more = torch.randint(0, 464, (64,))
        sure = F.cross_entropy(model(weak(data[few][labelled])), kind[few][labelled])
        extra, used = unlabelled_loss(model, data[rest][more])
        loss = sure + CONFIG["weight"] * extra
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average.update(model)
        if step % 9 == 8:
            average.shadow.eval()
            with torch.no_grad():
                right = (average.shadow(data[val]).argmax(1) == kind[val]).float().mean().item()
            print(f"step {step + 1}: loss {loss.item():.4f}  used {used:.2f}  average {right:.3f}")


if __name__ == "__main__":
    main()
