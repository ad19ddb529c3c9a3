import torch
import torch.nn as nn

from model import MobileSegmenter

CONFIG = {"lr": 5e-3, "epochs": 4, "batch_size": 4, "images": 12, "size": 16, "seed": 5}


def synthetic_portraits(count, size):
    yy, xx = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    images, masks = [], []
    for _ in range(count):
        cy, cx = torch.randint(4, size - 4, (2,))
        mask = ((yy - cy) ** 2 + (xx - cx) ** 2 < 16).long()
        images.append(torch.randn(3, size, size) * 0.3 + mask)
        masks.append(mask)
    return torch.utils.data.TensorDataset(torch.stack(images), torch.stack(masks))


def iou(logits, masks):
    prediction = logits.argmax(1)
    inter = ((prediction == 1) & (masks == 1)).sum()
    union = ((prediction == 1) | (masks == 1)).sum().clamp(min=1)
    return (inter / union).item()


def run_epoch(model, loader, criterion, optimizer=None):
    training = optimizer is not None
    model.train(training)
    total, score = 0.0, 0.0
    with torch.set_grad_enabled(training):
        for images, masks in loader:
            logits = model(images)
            loss = criterion(logits, masks)
            if training:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            total += loss.item()
            score += iou(logits, masks)
    return total / len(loader), score / len(loader)


def main():
    torch.manual_seed(CONFIG["seed"])
    data = synthetic_portraits(CONFIG["images"], CONFIG["size"])
    train, val = torch.utils.data.random_split(data, [8, 4])
    train_loader = torch.utils.data.DataLoader(train, CONFIG["batch_size"], shuffle=True)
    val_loader = torch.utils.data.DataLoader(val, CONFIG["batch_size"])
    model = MobileSegmenter()
    optimizer = torch.optim.Adam(model.parameters(), lr=CONFIG["lr"])
    criterion = nn.CrossEntropyLoss(weight=torch.tensor([0.3, 0.7]))
    for epoch in range(CONFIG["epochs"]):
        loss, score = run_epoch(model, train_loader, criterion, optimizer)
        val_loss, val_score = run_epoch(model, val_loader, criterion)
        print(f"{epoch}: train {loss:.3f}/{score:.3f} val {val_loss:.3f}/{val_score:.3f}")


if __name__ == "__main__":
    main()
