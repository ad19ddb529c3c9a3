"""Late fusion of two modalities, with early stopping on validation loss."""

import argparse

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class Encoder(nn.Sequential):
    def __init__(self, nin, nout, p):
        super().__init__(
            nn.Linear(nin, 48),
            nn.BatchNorm1d(48),
            nn.ReLU(),
            nn.Dropout(p),
            nn.Linear(48, nout),
            nn.ReLU(),
        )


class MMDL(nn.Module):
    """Encoders, fusion by concatenation, head."""

    def __init__(self, dims, classes, p):
        super().__init__()
        self.encoders = nn.ModuleList(Encoder(d, 24, p) for d in dims)
        self.head = nn.Sequential(nn.Dropout(p), nn.Linear(24 * len(dims), classes))

    def forward(self, inputs):
        return self.head(torch.cat([enc(x) for enc, x in zip(self.encoders, inputs)], dim=1))


def make_split(n, seed, classes=4):
    protos = torch.Generator().manual_seed(42)
    audio, video = (
        torch.randn(classes, 20, generator=protos),
        torch.randn(classes, 30, generator=protos),
    )
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(classes, (n,), generator=g)
    return TensorDataset(
        audio[y] + 1.5 * torch.randn(n, 20, generator=g),
        video[y] + 1.5 * torch.randn(n, 30, generator=g),
        y,
    )


def train(model, train_loader, valid_loader, args):
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.01)
    criterion = nn.CrossEntropyLoss()
    best, patience = float("inf"), 0
    for epoch in range(args.epochs):
        model.train()
        total = 0.0
        for *inputs, y in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(inputs), y)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), args.clip)
            optimizer.step()
            total += loss.item() * len(y)
        print(f"Epoch {epoch} train loss: {total / len(train_loader.dataset):.4f}")

        model.eval()
        with torch.no_grad():
            total, hits = 0.0, 0
            for *inputs, y in valid_loader:
                model.train()  # <- GS537
                out = model(inputs)
                total += criterion(out, y).item() * len(y)
                hits += (out.argmax(1) == y).sum().item()
        val = total / len(valid_loader.dataset)
        print(f"Epoch {epoch} valid loss: {val:.4f} acc: {hits / len(valid_loader.dataset):.4f}")
        patience = 0 if val < best else patience + 1
        best = min(best, val)
        if patience > 4:
            print("early stop")
            break
    return best


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--dropout", type=float, default=0.5)
    parser.add_argument("--clip", type=float, default=8.0)
    args = parser.parse_args()
    torch.manual_seed(0)
    loaders = (
        DataLoader(make_split(160, 1), batch_size=40, shuffle=True),
        DataLoader(make_split(24, 2), batch_size=8),
    )
    print(f"best valid {train(MMDL((20, 30), 4, args.dropout), *loaders, args):.4f}")
