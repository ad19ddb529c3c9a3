import torch
from torch import nn

from model import InterestNetwork

CONFIG = {
    "schema": {"item": 60, "category": 8},
    "embedding_size": 6,
    "train_batch_size": 32,
    "epochs": 3,
    "learning_rate": 0.01,
    "history": 10,
}


def clicks(rows, generator):
    category_of = torch.randint(1, 8, (60,), generator=generator)
    item = torch.randint(1, 60, (rows, CONFIG["history"]), generator=generator)
    lengths = torch.randint(3, CONFIG["history"], (rows, 1), generator=generator)
    item[torch.arange(CONFIG["history"])[None] >= lengths] = 0
    candidate = torch.randint(1, 60, (rows,), generator=generator)
    liked = (category_of[item] == category_of[candidate][:, None]) & (item > 0)
    history = {"item": item, "category": category_of[item] * (item > 0)}
    target = {"item": candidate, "category": category_of[candidate]}
    return history, target, (liked.sum(1) >= 1).float()


def subset(fields, index):
    return {name: values[index] for name, values in fields.items()}


def main():
    torch.manual_seed(2)
    generator = torch.Generator().manual_seed(8)
    history, target, label = clicks(256, generator)
    model = InterestNetwork(CONFIG)
    trainable = sum(p.numel() for p in model.parameters() if p.requires_grad)
    print(f"trainable parameters: {trainable}")
    optimizer = torch.optim.Adam(model.parameters(), lr=CONFIG["learning_rate"])
    criterion = nn.BCEWithLogitsLoss()
    for epoch in range(CONFIG["epochs"]):
        losses = []
        for index in torch.randperm(256, generator=generator).split(CONFIG["train_batch_size"]):
            optimizer.zero_grad()
            logits = model(subset(history, index), subset(target, index))
            loss = criterion(logits, label[index])
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print(f"epoch {epoch}: train loss {sum(losses) / len(losses):.4f}")


if __name__ == "__main__":
    main()
