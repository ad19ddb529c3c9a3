import torch
import torch.nn.functional as F
from config import Config
from data import loaders
from layers import ClickModel


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    losses, load = [], 0
    for dense, sites, ads, clicks in loader:
        logits, gates = model(dense, sites, ads)
        losses.append(F.binary_cross_entropy_with_logits(logits, clicks).item())
        load = load + (gates > 0).float().sum(0)
    model.train()
    return sum(losses) / len(losses), (load / load.sum()).tolist()


def main():
    cfg = Config()
    torch.manual_seed(cfg.seed)
    train, valid = loaders(cfg)
    model = ClickModel(cfg)
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    for epoch in range(cfg.epochs):
        for dense, sites, ads, clicks in train:
            logits, _ = model(dense, sites, ads)
            loss = F.binary_cross_entropy_with_logits(logits, clicks)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        logloss, load = evaluate(model, valid)
        shares = " ".join(f"{share:.2f}" for share in load)
        print(f"epoch {epoch} train {loss.item():.4f} valid {logloss:.4f} load {shares}")


if __name__ == "__main__":
    main()
