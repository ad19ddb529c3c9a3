import torch
import torch.nn.functional as F
from models import SpectraNet
from pruning import MagnitudePruner

CONFIG = {
    "bands": 24,
    "width": 32,
    "classes": 4,
    "lr": 0.05,
    "momentum": 0.9,
    "dense_steps": 12,
    "sparse_steps": 12,
    "sparsity": 0.6,
}


def make_data(n: int, cfg: dict):
    centres = torch.randn(cfg["classes"], cfg["bands"])
    labels = torch.randint(0, cfg["classes"], (n,))
    return centres[labels] + 0.7 * torch.randn(n, cfg["bands"]), labels


def batches(x, y, size: int, steps: int):
    for _ in range(steps):
        pick = torch.randint(0, len(x), (size,))
        yield x[pick], y[pick]


def accuracy(model, x, y) -> float:
    model.eval()
    with torch.no_grad():
        hit = (model(x).argmax(1) == y).float().mean().item()
    model.train()
    return hit


def main():
    torch.manual_seed(11)
    cfg = CONFIG
    x, y = make_data(512, cfg)
    train_x, train_y, val_x, val_y = x[:384], y[:384], x[384:], y[384:]
    model = SpectraNet(cfg["bands"], cfg["width"], cfg["classes"])
    optimizer = torch.optim.SGD(model.parameters(), lr=cfg["lr"], momentum=cfg["momentum"])

    for bx, by in batches(train_x, train_y, 48, cfg["dense_steps"]):
        optimizer.zero_grad()
        F.cross_entropy(model(bx), by).backward()
        optimizer.step()
    print(f"dense accuracy {accuracy(model, val_x, val_y):.3f}")

    pruner = MagnitudePruner(model, cfg["sparsity"])
    pruner.prune()
    print(f"density {pruner.density():.3f}  accuracy {accuracy(model, val_x, val_y):.3f}")

    for step, (bx, by) in enumerate(batches(train_x, train_y, 48, cfg["sparse_steps"])):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(bx), by)
        loss.backward()
        pruner.mask_gradients()
        optimizer.step()  # <~ GS519
        if step % 4 == 3:
            print(f"sparse step {step + 1}: loss {loss.item():.4f}")
    print(f"density {pruner.density():.3f}  accuracy {accuracy(model, val_x, val_y):.3f}")


if __name__ == "__main__":
    main()
