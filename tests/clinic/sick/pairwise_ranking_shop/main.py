import torch
from data import Interactions
from model import SpectralRecommender

CONFIG = {"dim": 16, "rank": 12, "reg": 1e-3, "lr": 0.05, "batch_size": 80, "epochs": 4}


def recall(scores, bought, k=6):
    top = scores.topk(k, dim=1).indices
    hits = bought.gather(1, top).float().sum(1)
    return (hits / bought.float().sum(1)).mean().item()


def train_epoch(model, optimizer, data, size):
    total, n = 0.0, 0
    for users, positives, negatives in data.batches(size):
        loss = model(users, positives, negatives)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total, n = total + loss.item(), n + 1
    return total / n


def main():
    torch.manual_seed(0)
    data = Interactions()
    model = SpectralRecommender(data.adjacency(), CONFIG["dim"], CONFIG["rank"], CONFIG["reg"])
    optimizer = torch.optim.Adam(model.parameters(), lr=CONFIG["lr"])
    for epoch in range(CONFIG["epochs"]):
        loss = train_epoch(model, optimizer, data, CONFIG["batch_size"])
        print(f"epoch {epoch} loss {loss:.4f} recall@6 {recall(model.scores(), data.bought):.3f}")


if __name__ == "__main__":
    main()
