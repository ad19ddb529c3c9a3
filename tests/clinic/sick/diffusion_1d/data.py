import torch
from torch.utils.data import Dataset


def make_recordings(n=96, length=64):
    """Two-lead recordings: a slow wave and a sharper echo of it."""
    t = torch.linspace(0, 1, length)
    phase = torch.rand(n, 1) * 6.28
    freq = 2.0 + torch.rand(n, 1) * 2
    lead1 = torch.sin(6.28 * freq * t + phase)
    lead2 = torch.tanh(3 * torch.sin(6.28 * freq * t + phase + 0.6))
    return torch.stack([lead1, lead2], dim=1) + 0.05 * torch.randn(n, 2, length)


class Dataset1D(Dataset):
    def __init__(self, tensor):
        super().__init__()
        self.tensor = tensor

    def __len__(self):
        return len(self.tensor)

    def __getitem__(self, idx):
        return self.tensor[idx]
