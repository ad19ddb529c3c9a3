import torch
import torch.nn.functional as F

from model import DANN, ramp

CONFIG = {
    "steps": 60,
    "batch_size": 96,
    "lr": 2e-3,
    "peak_strength": 0.5,
    "log_every": 10,
    "seed": 0,
}


def make_domain(n, shift, seed):
    """Three classes in five informative dimensions; five others depend on the domain."""
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 3, (n,), generator=g)
    centers = torch.zeros(3, 5)
    centers[0, 0], centers[1, 1], centers[2, 2] = 2.0, 2.0, 2.0
    informative = centers[y] + 0.7 * torch.randn(n, 5, generator=g) + 0.4 * shift
    nuisance = shift * torch.tensor([2.0, -2.0, 1.0, 0.0, 1.5]) + 0.5 * torch.randn(
        n, 5, generator=g
    )
    return torch.cat([informative, nuisance], dim=1), y


@torch.no_grad()
def accuracy(model, x, y):
    return (model(x, 0.0)[0].argmax(1) == y).float().mean().item()


def main(cfg):
    torch.manual_seed(cfg["seed"])
    xs, ys = make_domain(1500, 0.0, seed=1)
    xt, yt = make_domain(1500, 1.0, seed=2)
    model = DANN()
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg["lr"])
    half = cfg["batch_size"] // 2
    domain = torch.cat([torch.zeros(half), torch.ones(half)])
    for step in range(cfg["steps"]):
        strength = ramp(step / cfg["steps"], cfg["peak_strength"])
        i, j = torch.randint(len(xs), (half,)), torch.randint(len(xt), (half,))
        class_logits, domain_logits = model(torch.cat([xs[i], xt[j]]), strength)
        class_loss = F.cross_entropy(class_logits[:half], ys[i])
        domain_loss = F.binary_cross_entropy_with_logits(domain_logits, domain)
        optimizer.zero_grad()
        (class_loss + domain_loss).backward()
        optimizer.step()
        if (step + 1) % cfg["log_every"] == 0:
            print(
                f"step {step + 1:4d}  strength {strength:.2f}  class loss {class_loss.item():.4f}  "
                f"domain loss {domain_loss.item():.4f}  source acc {accuracy(model, xs, ys):.3f}  "
                f"target acc {accuracy(model, xt, yt):.3f}"
            )


if __name__ == "__main__":
    main(CONFIG)
