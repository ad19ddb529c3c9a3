import torch


def make_images(n, size, grid, gen):
    """One square per image; targets are laid out on a grid x grid map: obj, cx, cy, w."""
    cell = size // grid
    images = 0.1 * torch.randn(n, 1, size, size, generator=gen)
    targets = torch.zeros(n, 4, grid, grid)
    for i in range(n):
        w = int(torch.randint(4, 8, (1,), generator=gen))
        x0, y0 = torch.randint(0, size - w, (2,), generator=gen).tolist()
        images[i, 0, y0 : y0 + w, x0 : x0 + w] += 1.0
        cx, cy = x0 + w / 2, y0 + w / 2
        gx, gy = int(cx // cell), int(cy // cell)
        targets[i, :, gy, gx] = torch.tensor([1.0, cx / cell - gx, cy / cell - gy, w / size])
    return images, targets
