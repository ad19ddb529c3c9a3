"""Domain-adversarial training: labels on the source domain, none on the target domain."""

import math

import torch
import torch.nn.functional as F
from torch import nn


class ReverseGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.neg() * ctx.strength, None


class DANN(nn.Module):
    def __init__(self, n_in=6, hidden=32, classes=2):
        super().__init__()
        self.features = nn.Sequential(
            nn.Linear(n_in, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU()
        )
        self.classifier = nn.Linear(hidden, classes)
        self.domain = nn.Sequential(nn.Linear(hidden, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, x, strength):
        z = self.features(x)
        reversed_z = ReverseGradient.apply(z, strength)
        return self.classifier(z), self.domain(reversed_z).squeeze(1)


def make_domain(n, shift, generator):
    labels = torch.randint(0, 2, (n,), generator=generator)
    x = torch.randn(n, 6, generator=generator) * 0.6
    x[:, 0] += 2.0 * labels - 1.0
    x[:, 1] -= 2.0 * labels - 1.0
    x[:, 4:] += shift
    return x, labels


def strength_at(progress, gamma=10.0):
    return 2.0 / (1.0 + math.exp(-gamma * progress)) - 1.0


@torch.no_grad()
def accuracy(model, x, labels):
    model.eval()
    logits, domain_logit = model(x, 0.0)
    model.train()
    return (logits.argmax(1) == labels).float().mean().item(), torch.sigmoid(domain_logit).mean()


def main():
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(7)
    source_x, source_y = make_domain(256, 0.0, generator)
    target_x, target_y = make_domain(256, 1.5, generator)
    model = DANN()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: 1.0 / (1.0 + 10.0 * step / 36) ** 0.75
    )

    epochs, batch = 4, 32
    total = epochs * (len(source_x) // batch)
    step = 0
    for epoch in range(epochs):
        order_s = torch.randperm(len(source_x), generator=generator).split(batch)
        order_t = torch.randperm(len(target_x), generator=generator).split(batch)
        sums = torch.zeros(2)
        for ids_s, ids_t in zip(order_s, order_t, strict=True):
            strength = strength_at(step / total)
            x = torch.cat([source_x[ids_s], target_x[ids_t]])
            is_target = torch.cat([torch.zeros(len(ids_s)), torch.ones(len(ids_t))])
            logits, domain_logit = model(x, strength)
            label_loss = F.cross_entropy(logits[: len(ids_s)], source_y[ids_s])
            domain_loss = F.binary_cross_entropy_with_logits(domain_logit, is_target)
            optimizer.zero_grad()
            (label_loss + domain_loss).backward()
            optimizer.step()
            scheduler.step()
            sums += torch.stack([label_loss.detach(), domain_loss.detach()])
            step += 1
        label_mean, domain_mean = (sums / len(order_s)).tolist()
        acc, target_prob = accuracy(model, target_x, target_y)
        print(
            f"epoch {epoch} label {label_mean:.3f} domain {domain_mean:.3f} "
            f"target acc {acc:.3f} p(target) {target_prob:.2f}"
        )


if __name__ == "__main__":
    main()
