import argparse

import torch
from torch.utils.data import DataLoader, Dataset

from model import DenseDepth, depth_loss
from utils import AverageMeter, depth_norm, room


class RangeImages(Dataset):
    def __init__(self, length, size=16):
        generator = torch.Generator().manual_seed(3)
        self.depth = torch.stack([room(size, generator)[None] for _ in range(length)])
        noise = 0.05 * torch.randn(length, 3, size, size, generator=generator)
        self.image = (self.depth / 500).expand(-1, 3, -1, -1) + noise

    def __len__(self):
        return len(self.depth)

    def __getitem__(self, index):
        return {"image": self.image[index], "depth": self.depth[index]}


def main():
    parser = argparse.ArgumentParser(description="Depth estimation with skip connections")
    parser.add_argument("--epochs", default=3, type=int)
    parser.add_argument("--lr", default=1e-3, type=float)
    parser.add_argument("--bs", default=4, type=int)
    args = parser.parse_args([])

    torch.manual_seed(8)
    loader = DataLoader(RangeImages(12), args.bs, shuffle=True)
    model = DenseDepth()
    optimizer = torch.optim.Adam(model.parameters(), args.lr, amsgrad=True)
    for epoch in range(args.epochs):
        losses = AverageMeter()
        for batch in loader:
            optimizer.zero_grad()
            depth = depth_norm(batch["depth"])
            output = model(batch["image"])
            loss = depth_loss(output, depth)
            losses.update(loss.item(), batch["image"].size(0))
            loss.backward()
            optimizer.step()
        print(f"Epoch: [{epoch}] Loss {losses.avg:.4f}")


if __name__ == "__main__":
    main()
