"""Lesion segmentation with an overlap loss."""

import torch
from metrics import DiceLoss, IoU
from unet import SmallUNet

CFG = {"threshold": 0.5, "lr": 1e-2, "epochs": 3, "batch": 8}


def make_scans(count, size=16):
    yy, xx = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    cy, cx = torch.randint(4, size - 4, (2, count, 1, 1))
    radius = torch.randint(2, 5, (count, 1, 1))
    masks = (((yy - cy) ** 2 + (xx - cx) ** 2) <= radius**2).float().unsqueeze(1)
    scans = masks + 0.5 * torch.randn(count, 1, size, size)
    return scans, masks


def run_epoch(model, data, criterion, metric, optimizer=None, batch=8):
    scans, masks = data
    model.train(optimizer is not None)
    losses, scores = [], []
    for x, y in zip(scans.split(batch), masks.split(batch), strict=True):
        with torch.set_grad_enabled(optimizer is not None):
            logits = model(x)
            loss = criterion(logits, y)
        if optimizer is not None:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        losses.append(loss.item())
        scores.append(metric(logits, y))
    return sum(losses) / len(losses), sum(scores) / len(scores)


def main():
    torch.manual_seed(6)
    train, valid = make_scans(64), make_scans(16)
    model = SmallUNet()
    criterion = DiceLoss(threshold=CFG["threshold"])  # <~ GS303
    optimizer = torch.optim.Adam(model.parameters(), lr=CFG["lr"])
    for epoch in range(CFG["epochs"]):
        loss, _ = run_epoch(model, train, criterion, IoU(), optimizer, CFG["batch"])
        _, score = run_epoch(model, valid, criterion, IoU(), None, CFG["batch"])
        print(f"epoch {epoch}: train loss {loss:.4f} valid iou {score:.4f}")


if __name__ == "__main__":
    main()
