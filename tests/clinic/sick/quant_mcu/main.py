import torch
import torch.nn.functional as F

from qmodel import TinyQuantNet

CONFIG = {"bits": 4, "classes": 4, "epochs": 3, "batches": 8, "batch": 32, "lr": 0.05}


def dataset(cfg):
    protos = torch.randn(cfg["classes"], 1, 8, 8)
    out = []
    for _ in range(cfg["batches"]):
        y = torch.randint(0, cfg["classes"], (cfg["batch"],))
        out.append((protos[y] + 0.5 * torch.randn(cfg["batch"], 1, 8, 8), y))
    return out


def run_epoch(model, data, optimizer):
    total, hits, seen = 0.0, 0, 0
    for x, y in data:
        logits = model(x)
        loss = F.cross_entropy(logits, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(y)
        hits += (logits.argmax(1) == y).sum().item()
        seen += len(y)
    return total / seen, hits / seen


def main():
    torch.manual_seed(4)
    data = dataset(CONFIG)
    model = TinyQuantNet(CONFIG["bits"], CONFIG["classes"])
    optimizer = torch.optim.SGD(model.parameters(), lr=CONFIG["lr"], momentum=0.9)
    for epoch in range(CONFIG["epochs"]):
        loss, acc = run_epoch(model, data, optimizer)
        print(f"epoch {epoch} loss {loss:.4f} acc {acc:.3f}")


if __name__ == "__main__":
    main()
