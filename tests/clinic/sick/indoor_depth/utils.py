import torch


def depth_norm(depth, max_depth=1000.0):
    """Near surfaces get large targets, far ones small targets."""
    return max_depth / depth  # <- GS105


class AverageMeter:
    def __init__(self):
        self.sum, self.count = 0.0, 0

    def update(self, value, n=1):
        self.sum += value * n
        self.count += n

    @property
    def avg(self):
        return self.sum / max(self.count, 1)


def room(size, generator):
    """Depth of a floor and a back wall in centimetres, as a range camera stores it."""
    rows = torch.linspace(1, 0, size)[:, None].expand(size, size)
    depth = 150 + 350 * rows + 20 * torch.rand(size, size, generator=generator)
    shadow = torch.rand(size, size, generator=generator) < 0.02
    return torch.where(shadow, torch.zeros(()), depth)
