import torch
from torch.utils.data import Dataset


class AxialSlices(Dataset):
    """Grey ellipses (the cord) on noisy background."""

    def __init__(self, length, size=16):
        yy, xx = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
        self.items = []
        for _ in range(length):
            cy, cx = (torch.rand(2) * 4 + size / 2 - 2).tolist()
            mask = (((yy - cy) / 3) ** 2 + ((xx - cx) / 4) ** 2 < 1).float()[None]
            self.items.append((mask * 0.8 + 0.4 * torch.randn(1, size, size), mask))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        return self.items[index]
