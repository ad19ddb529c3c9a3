import torch
from torch.utils.data import TensorDataset


def scenes(n, size, seed):
    """Background 0, bright rectangles 1, textured rectangles 2."""
    gen = torch.Generator().manual_seed(seed)
    images = 0.3 * torch.randn(n, 1, size, size, generator=gen)
    labels = torch.zeros(n, size, size, dtype=torch.long)
    stripes = (torch.arange(size) % 2).float() * 2 - 1
    for i in range(n):
        for cls in (1, 2):
            h, w = torch.randint(5, 10, (2,), generator=gen).tolist()
            y = int(torch.randint(0, size - h, (1,), generator=gen))
            x = int(torch.randint(0, size - w, (1,), generator=gen))
            patch = torch.ones(h, w) if cls == 1 else stripes[x : x + w].expand(h, w)
            images[i, 0, y : y + h, x : x + w] = patch + 0.3 * torch.randn(h, w, generator=gen)
            labels[i, y : y + h, x : x + w] = cls
    return TensorDataset(images, labels)
