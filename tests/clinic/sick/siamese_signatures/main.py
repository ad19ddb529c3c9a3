"""Siamese embedding of signatures with a margin loss."""

import torch
import torch.nn.functional as F
from losses import BatchMarginLoss
from torch import nn
from torch.utils.data import DataLoader, Dataset


class SignatureNet(nn.Module):
    def __init__(self, width=8, emb=12):
        super().__init__()
        self.conv1 = nn.Conv2d(1, width, 3, padding=1)
        self.conv2 = nn.Conv2d(width, 2 * width, 3, padding=1)
        self.head = nn.Linear(2 * width * 9, emb)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.head(x.flatten(1))


class SignaturePairs(Dataset):
    """Each item is a reference image and a second scan of a signer."""

    def __init__(self, signers=20, scans=4):
        style = torch.randn(signers, 1, 1, 12, 12)
        self.images = style + 0.3 * torch.randn(signers, scans, 1, 12, 12)
        self.signers, self.scans = signers, scans

    def __len__(self):
        return self.signers * self.scans

    def __getitem__(self, index):
        signer, scan = divmod(index, self.scans)
        other = (scan * 3 + signer) % self.scans
        return self.images[signer, scan], self.images[signer, other], signer


def main():
    torch.manual_seed(9)
    loader = DataLoader(SignaturePairs(), batch_size=16, shuffle=True)
    model = SignatureNet()
    criterion = BatchMarginLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.5)
    for epoch in range(3):
        running = 0.0
        for first, second, signer in loader:
            loss = criterion(model(first), model(second), signer, signer)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            running += loss.item()
        scheduler.step()
        print(f"epoch {epoch} loss {running / len(loader):.4f}")


if __name__ == "__main__":
    main()
