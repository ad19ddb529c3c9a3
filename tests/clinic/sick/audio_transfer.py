"""Two-stage transfer of an audio encoder: linear probe first, then full fine-tuning."""

import torch
import torch.nn.functional as F
from torch import nn


class TrainableMixin:
    def set_trainable(self, trainable=False):
        for p in self.parameters():
            if p.requires_grad:  # <- GS000
                p.requires_grad = trainable
        return self


class AudioEncoder(nn.Module, TrainableMixin):
    def __init__(self, n_mels=16, dim=32):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 8, 3, padding=1),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.fc = nn.Sequential(nn.Linear(8 * (n_mels // 4), dim), nn.ReLU(), nn.Linear(dim, dim))

    def forward(self, spec):
        x = self.features(spec).permute(0, 3, 2, 1).flatten(2)
        x = self.fc(x)
        return x.amax(1) + x.mean(1)


class TransferModel(nn.Module):
    def __init__(self, encoder, classes):
        super().__init__()
        self.encoder = encoder
        self.norm = nn.BatchNorm1d(32, affine=False)
        self.head = nn.Linear(32, classes)

    def forward(self, spec):
        return self.head(self.norm(self.encoder(spec)))


def make_clips(count, classes=4, n_mels=16, frames=12):
    y = torch.randint(0, classes, (count,))
    spec = 0.5 * torch.randn(count, 1, n_mels, frames)
    rows = torch.arange(n_mels).view(1, 1, -1, 1)
    spec += ((rows // (n_mels // classes)) == y.view(-1, 1, 1, 1)).float()
    return spec, y


def run_stage(name, model, data, lr, epochs, batch=32):
    spec, y = data
    groups = [
        {"params": model.encoder.parameters(), "lr": 0.1 * lr},
        {"params": model.head.parameters(), "lr": lr},
    ]
    optimizer = torch.optim.Adam(groups)
    model.train()
    for epoch in range(epochs):
        hits, total = 0, 0.0
        for idx in torch.randperm(len(y)).split(batch):
            logits = model(spec[idx])
            loss = F.cross_entropy(logits, y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            hits += (logits.argmax(1) == y[idx]).sum().item()
            total += loss.item() * len(idx)
        print(f"{name} epoch {epoch}: loss {total / len(y):.4f} acc {hits / len(y):.3f}")


def main():
    torch.manual_seed(19)
    data = make_clips(160)
    encoder = AudioEncoder()
    model = TransferModel(encoder, classes=4)
    encoder.set_trainable(False)
    run_stage("probe", model, data, lr=1e-2, epochs=2)
    encoder.set_trainable(True)
    run_stage("finetune", model, data, lr=1e-2, epochs=3)


if __name__ == "__main__":
    main()
