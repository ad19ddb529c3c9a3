"""A dictionary of patches with thresholded codes, trained by reconstruction."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class ThresholdFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, threshold: float, value: float):
        ctx.threshold = threshold
        ctx.save_for_backward(x)
        return x.masked_fill(x <= threshold, value)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output.masked_fill(x > ctx.threshold, 0), None, None  # <- GS601


class Threshold(nn.Module):
    def __init__(self, threshold: float, value: float = 0.0):
        super().__init__()
        self.threshold, self.value = threshold, value

    def forward(self, x):
        return ThresholdFunction.apply(x, self.threshold, self.value)


class PatchDictionary(nn.Module):
    def __init__(self, pixels: int = 36, atoms: int = 64):
        super().__init__()
        self.analysis = nn.Linear(pixels, atoms)
        self.threshold = Threshold(0.1)
        self.synthesis = nn.Linear(atoms, pixels, bias=False)

    def forward(self, patches):
        codes = self.threshold(self.analysis(patches))
        return self.synthesis(codes), codes


def edges(n: int, size: int = 6):
    grid = torch.linspace(-1, 1, size)
    yy, xx = torch.meshgrid(grid, grid, indexing="ij")
    angle = 6.28 * torch.rand(n, 1, 1)
    offset = torch.rand(n, 1, 1) - 0.5
    return torch.tanh(3 * (xx * angle.cos() + yy * angle.sin() - offset)).flatten(1)


def main():
    torch.manual_seed(9)
    patches, held_out = edges(1024), edges(128)
    model = PatchDictionary()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step in range(36):
        batch = patches[torch.randint(0, 1024, (64,))]
        restored, codes = model(batch)
        loss = F.mse_loss(restored, batch) + 1e-3 * codes.abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 9 == 8:
            with torch.no_grad():
                restored, codes = model(held_out)
            error = F.mse_loss(restored, held_out).item()
            active = (codes > 0).float().mean().item()
            print(f"step {step + 1}: loss {loss.item():.4f}  val {error:.4f}  active {active:.3f}")


if __name__ == "__main__":
    main()
