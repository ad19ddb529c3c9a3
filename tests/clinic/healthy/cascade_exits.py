"""A cascade: confident samples leave early, later stages see what remains; then calibration."""

import torch
import torch.nn.functional as F
from torch import nn


class Stage(nn.Module):
    def __init__(self, n_in, width, classes):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(n_in, width), nn.ReLU())
        self.exit = nn.Linear(width, classes)

    def forward(self, x):
        h = self.body(x)
        return h, self.exit(h)


class Cascade(nn.Module):
    def __init__(self, n_in=8, width=24, classes=3, stages=3, threshold=0.85):
        super().__init__()
        sizes = [n_in] + [width] * (stages - 1)
        self.stages = nn.ModuleList(Stage(n, width, classes) for n in sizes)
        self.log_temperature = nn.Parameter(torch.zeros(stages))
        self.threshold = threshold

    def losses(self, x, y):
        """The loss of each stage on the samples that reached it, and how many those were."""
        losses, counts = [], []
        for stage in self.stages:
            counts.append(len(x))
            if len(x) == 0:
                losses.append(torch.zeros(()))
                continue
            h, logits = stage(x)
            losses.append(F.cross_entropy(logits, y, reduction="sum"))
            with torch.no_grad():
                stay = logits.softmax(dim=1).amax(dim=1) < self.threshold
            x, y = h[stay], y[stay]
        return losses, counts

    @torch.no_grad()
    def all_logits(self, x):
        out = []
        for stage in self.stages:
            x, logits = stage(x)
            out.append(logits)
        return torch.stack(out)

    @torch.no_grad()
    def predict(self, x):
        logits = self.all_logits(x)
        probs = (logits / self.log_temperature.exp().view(-1, 1, 1)).softmax(dim=-1)
        confident = probs.amax(dim=-1) >= self.threshold
        confident[-1] = True
        first = confident.float().argmax(dim=0)
        rows = torch.arange(x.shape[0])
        return probs[first, rows].argmax(dim=1), first


def calibrate(model, x, y):
    logits = model.all_logits(x)
    optimizer = torch.optim.LBFGS(
        [model.log_temperature], lr=1.0, max_iter=20, line_search_fn="strong_wolfe"
    )

    def nll():
        scaled = logits / model.log_temperature.exp().view(-1, 1, 1)
        return F.cross_entropy(scaled.flatten(0, 1), y.repeat(len(logits)))

    def closure():
        optimizer.zero_grad()
        loss = nll()
        loss.backward()
        return loss

    before = nll().item()
    optimizer.step(closure)
    return before, nll().item()


def make_data(n):
    y = torch.randint(0, 3, (n,))
    x = torch.randn(n, 8)
    easy = torch.rand(n) < 0.9
    x[:, 0] = torch.where(easy, 3.0 * (y - 1), x[:, 0])
    hard = ~easy
    x[hard, 1] = 2.0 * (y[hard] - 1) + 0.4 * torch.randn(int(hard.sum()))
    return x, y


def main():
    torch.manual_seed(0)
    x, y = make_data(256)
    val_x, val_y = make_data(200)
    model = Cascade()
    weights = [p for name, p in model.named_parameters() if name != "log_temperature"]
    optimizer = torch.optim.Adam(weights, lr=0.01)
    for epoch in range(5):
        reached = torch.zeros(3, dtype=torch.long)
        total = 0.0
        for ids in torch.randperm(len(x)).split(32):
            losses, counts = model.losses(x[ids], y[ids])
            loss = torch.stack(losses).sum() / sum(counts)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            reached += torch.tensor(counts)
            total += loss.item()
        print(f"epoch {epoch} loss {total / 8:.3f} reached {reached.tolist()}")
    before, after = calibrate(model, val_x, val_y)
    predicted, exits = model.predict(val_x)
    print(f"calibration {before:.3f} -> {after:.3f}")
    accuracy = (predicted == val_y).float().mean().item()
    print(f"accuracy {accuracy:.2f} exits {torch.bincount(exits, minlength=3).tolist()}")


if __name__ == "__main__":
    main()
