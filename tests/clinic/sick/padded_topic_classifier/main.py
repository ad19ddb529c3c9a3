import random

import torch
import torch.nn.functional as F

from data import PAD, TopicCorpus, batches
from layers import TopicClassifier

CONFIG = {
    "vocab_size": 400,
    "n_topics": 6,
    "dim": 32,
    "train_length": 16,
    "serve_length": 32,
    "batch_size": 64,
    "epochs": 3,
    "lr": 5e-3,
    "weight_decay": 1e-3,
    "seed": 5,
}


@torch.no_grad()
def accuracy(model, docs, length):
    hits = sum((model(ids).argmax(1) == y).sum().item() for ids, y in batches(docs, 256, length))
    return hits / len(docs)


def main(cfg):
    torch.manual_seed(cfg["seed"])
    rng = random.Random(cfg["seed"])
    train = TopicCorpus(1000, cfg["vocab_size"], cfg["n_topics"], seed=1).docs
    valid = TopicCorpus(300, cfg["vocab_size"], cfg["n_topics"], seed=2).docs
    model = TopicClassifier(cfg["vocab_size"], cfg["dim"], cfg["n_topics"], padding_idx=PAD)
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=cfg["lr"], weight_decay=cfg["weight_decay"]
    )

    for epoch in range(1, cfg["epochs"] + 1):
        total, n = 0.0, 0
        for ids, labels in batches(train, cfg["batch_size"], cfg["train_length"], rng):
            loss = F.cross_entropy(model(ids), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(labels)
            n += len(labels)
        acc = accuracy(model, valid, cfg["train_length"])
        acc_long = accuracy(model, valid, cfg["serve_length"])
        print(
            f"epoch {epoch:2d}  loss {total / n:.4f}  valid acc {acc:.3f}  "
            f"serving acc {acc_long:.3f}"
        )


if __name__ == "__main__":
    main(CONFIG)
