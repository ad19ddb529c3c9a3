import argparse

import torch
import torch.nn as nn

from model import build_model


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bits", type=int, default=3)
    parser.add_argument("--width", type=int, default=8)
    parser.add_argument("--lr", type=float, default=0.02)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--classes", type=int, default=4)
    return parser.parse_args([])


def make_batches(count, classes, generator):
    prototypes = torch.randn(classes, 3, 12, 12, generator=generator)
    batches = []
    for _ in range(count):
        labels = torch.randint(0, classes, (16,), generator=generator)
        noise = torch.randn(16, 3, 12, 12, generator=generator)
        batches.append((prototypes[labels] + 0.5 * noise, labels))
    return batches


@torch.no_grad()
def evaluate(model, batches):
    model.eval()
    hits = sum((model(x).argmax(1) == y).sum().item() for x, y in batches)
    return hits / sum(len(y) for _, y in batches)


def main():
    args = parse_args()
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(1)
    batches = make_batches(8, args.classes, generator)
    train, test = batches[:6], batches[6:]
    model = build_model(args.classes, args.width, args.bits)
    params = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(params, lr=args.lr, momentum=0.9)  # <- GS307
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(args.epochs):
        model.train()
        running = 0.0
        for images, labels in train:
            optimizer.zero_grad()
            loss = criterion(model(images), labels)
            loss.backward()
            optimizer.step()
            running += loss.item()
        scheduler.step()
        print(f"epoch {epoch} loss {running / len(train):.4f} acc {evaluate(model, test):.3f}")


if __name__ == "__main__":
    main()
