import torch
from torch import nn, optim

from config import Options
from metrics import ArcMargin
from models import FaceNet


def faces(options, per_class=12):
    prototypes = torch.randn(options.num_classes, 1, 12, 12)
    labels = torch.arange(options.num_classes).repeat(per_class)
    return prototypes[labels] + 0.8 * torch.randn(len(labels), 1, 12, 12), labels


def accuracy(output, target):
    return (output.argmax(1) == target).float().mean().item()


def train_epoch(options, model, metric_fc, criterion, optimizer, images, labels):
    model.train()
    metric_fc.train()
    total, correct = 0.0, 0.0
    batches = torch.randperm(len(images)).split(options.batch_size)
    for index in batches:
        feature = model(images[index])
        output = metric_fc(feature, labels[index])
        loss = criterion(output, labels[index])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
        correct += accuracy(metric_fc(feature), labels[index])
    return total / len(batches), correct / len(batches)


def main():
    options = Options()
    torch.manual_seed(options.seed)
    images, labels = faces(options)
    model = FaceNet(options.embedding)
    metric_fc = ArcMargin(options.embedding, options.num_classes, options.scale, options.margin)
    criterion = nn.CrossEntropyLoss()
    trainable = filter(lambda p: p.requires_grad, model.parameters())  # <- GS307
    optimizer = optim.SGD(  # <~ GS307
        trainable, lr=options.lr, momentum=options.momentum, weight_decay=options.weight_decay
    )
    scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=options.epochs)
    for epoch in range(options.epochs):
        loss, acc = train_epoch(options, model, metric_fc, criterion, optimizer, images, labels)
        scheduler.step()
        print(f"epoch {epoch} loss {loss:.4f} acc {acc:.3f}")


if __name__ == "__main__":
    main()
