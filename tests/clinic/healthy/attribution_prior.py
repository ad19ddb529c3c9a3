"""Training with attacked inputs and a prior on attributions, then integrated gradients."""

import torch
import torch.nn.functional as F
from torch import nn

N_FEATURES, N_IRRELEVANT = 10, 4


class Classifier(nn.Module):
    def __init__(self, hidden=32, classes=3):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(N_FEATURES, hidden),
            nn.Softplus(beta=4),
            nn.Linear(hidden, hidden),
            nn.Softplus(beta=4),
            nn.Linear(hidden, classes),
        )

    def forward(self, x):
        return self.net(x)


def fgsm(model, x, y, epsilon):
    attacked = x.clone().requires_grad_(True)
    F.cross_entropy(model(attacked), y).backward()
    return (x + epsilon * attacked.grad.sign()).detach()


def right_reasons(model, x, y, mask):
    """Input gradients on features that an expert marked as irrelevant."""
    x = x.detach().requires_grad_(True)
    log_probs = F.log_softmax(model(x), dim=1)
    (grad,) = torch.autograd.grad(log_probs.sum(), x, create_graph=True)
    return F.nll_loss(log_probs, y), (grad * mask).pow(2).sum(dim=1).mean()


def saliency(model, x, target):
    x = x.detach().requires_grad_(True)
    model(x).gather(1, target.unsqueeze(1)).sum().backward()
    return x.grad.abs()


def integrated_gradients(model, x, target, steps=32):
    baseline = torch.zeros_like(x)
    total = torch.zeros_like(x)
    for k in range(steps):
        point = baseline + (k + 0.5) / steps * (x - baseline)
        point.requires_grad_(True)
        score = model(point).gather(1, target.unsqueeze(1)).sum()
        total += torch.autograd.grad(score, point)[0]
    return (x - baseline) * total / steps


def make_data(n, confounded):
    y = torch.randint(0, 3, (n,))
    x = torch.randn(n, N_FEATURES)
    x[:, :3] += 1.5 * F.one_hot(y, 3)
    if confounded:
        x[:, -N_IRRELEVANT:-1] += 2.0 * F.one_hot(y, 3)
    return x, y


def main():
    torch.manual_seed(0)
    x, y = make_data(240, confounded=True)
    mask = torch.zeros(N_FEATURES)
    mask[-N_IRRELEVANT:] = 1.0
    model = Classifier()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(6):
        sums = torch.zeros(3)
        for ids in torch.randperm(len(x)).split(40):
            attacked = fgsm(model, x[ids], y[ids], epsilon=0.1)
            optimizer.zero_grad()
            clean_loss, prior = right_reasons(model, x[ids], y[ids], mask)
            attacked_loss = F.cross_entropy(model(attacked), y[ids])
            loss = 0.5 * clean_loss + 0.5 * attacked_loss + 2.0 * prior
            loss.backward()
            optimizer.step()
            sums += torch.stack([clean_loss.detach(), attacked_loss.detach(), prior.detach()])
        clean, attacked, prior = (sums / 6).tolist()
        print(f"epoch {epoch} clean {clean:.3f} attacked {attacked:.3f} prior {prior:.4f}")

    model.eval()
    test_x, test_y = make_data(150, confounded=False)
    with torch.no_grad():
        predicted = model(test_x).argmax(dim=1)
    print(f"accuracy without the confounder {(predicted == test_y).float().mean():.2f}")
    attributions = integrated_gradients(model, test_x, predicted)
    with torch.no_grad():
        rise = model(test_x) - model(torch.zeros_like(test_x))
        gap = (attributions.sum(1) - rise.gather(1, predicted.unsqueeze(1)).squeeze(1)).abs().max()
    model.zero_grad()
    maps = saliency(model, test_x, predicted).mean(dim=0)
    model.zero_grad()
    print(f"completeness gap {gap.item():.1e}")
    print(f"saliency relevant {maps[:3].mean():.3f} irrelevant {maps[-N_IRRELEVANT:].mean():.3f}")


if __name__ == "__main__":
    main()
