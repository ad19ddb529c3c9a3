import torch
from torch.utils.data import DataLoader

from data import AxialSlices
from model import SmallUnet

CONTEXT = {
    "seed": 6,
    "batch_size": 2,
    "num_epochs": 4,
    "initial_lr": 0.01,
    "lr_decay": 0.5,
    "early_stopping_patience": 3,
}


def dice_loss(prediction, target, eps=1.0):
    inter = (prediction * target).sum()
    return 1 - (2 * inter + eps) / (prediction.sum() + target.sum() + eps)


def train_epoch(model, loader, optimizer, scheduler):
    model.train()
    total = 0.0
    for images, masks in loader:
        loss = dice_loss(model(images), masks)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()  # <- GS514
        total += loss.item()
    return total / len(loader)


@torch.no_grad()
def validate(model, loader):
    model.eval()
    return sum(dice_loss(model(x), y).item() for x, y in loader) / len(loader)


def main():
    torch.manual_seed(CONTEXT["seed"])
    train_loader = DataLoader(AxialSlices(20), CONTEXT["batch_size"], shuffle=True)
    val_loader = DataLoader(AxialSlices(4), CONTEXT["batch_size"])
    model = SmallUnet()
    optimizer = torch.optim.Adam(model.parameters(), lr=CONTEXT["initial_lr"])
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=CONTEXT["lr_decay"])
    best, waited = float("inf"), 0
    for epoch in range(CONTEXT["num_epochs"]):
        train_loss = train_epoch(model, train_loader, optimizer, scheduler)
        val_loss = validate(model, val_loader)
        lr = optimizer.param_groups[0]["lr"]
        print(f"Epoch {epoch} lr {lr:.2e} train {train_loss:.4f} val {val_loss:.4f}")
        if val_loss < best:
            best, waited = val_loss, 0
        else:
            waited += 1
        if waited >= CONTEXT["early_stopping_patience"]:
            print("early stopping")
            break


if __name__ == "__main__":
    main()
