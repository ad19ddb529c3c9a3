"""Train a small local-patch descriptor with hard-in-batch triplets, stored in half precision."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class PatchDescriptor(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.layers = nn.Sequential(
            nn.InstanceNorm2d(1),
            nn.Conv2d(1, 8, 3, stride=2, padding=1, bias=False),
            nn.ReLU(),
            nn.Conv2d(8, 16, 3, stride=2, padding=1, bias=False),
            nn.ReLU(),
            nn.Conv2d(16, dim, 4, bias=False),
        )

    def forward(self, patches, eps=1e-10):  # <~ GS000
        descr = self.layers(patches).flatten(1)
        norm = descr.pow(2).sum(1, keepdim=True).add(eps).sqrt()  # <- GS000
        return descr / norm


class HardTripletLoss(nn.Module):
    def __init__(self, margin=0.5):
        super().__init__()
        self.margin = margin

    def forward(self, anchors, positives):
        similarity = anchors.float() @ positives.float().T
        positive = similarity.diagonal()
        negatives = similarity - 10 * torch.eye(len(similarity))
        hardest = torch.maximum(negatives.max(0).values, negatives.max(1).values)
        return F.relu(self.margin + hardest - positive).mean()


class MasterWeights:
    """Float copies of half parameters; the update happens in float."""

    def __init__(self, model, lr):
        self.half = list(model.parameters())
        self.full = [p.detach().float().requires_grad_() for p in self.half]
        self.optimizer = torch.optim.SGD(self.full, lr=lr, momentum=0.9)

    def zero_grad(self):
        for p in self.half:
            p.grad = None

    @torch.no_grad()
    def step(self, scale):
        for full, half in zip(self.full, self.half):
            full.grad = half.grad.float() / scale
        self.optimizer.step()
        for full, half in zip(self.full, self.half):
            half.copy_(full)


def patch_pairs(count, generator):
    patches = torch.rand(count, 1, 16, 16, generator=generator)
    jitter = 0.05 * torch.randn(patches.shape, generator=generator)
    views = patches + jitter
    flat = torch.rand(count, generator=generator) < 0.15
    patches[flat], views[flat] = 0.5, 0.5
    return patches, views


def main():
    torch.manual_seed(2)
    generator = torch.Generator().manual_seed(8)
    model = PatchDescriptor().half()
    master = MasterWeights(model, lr=0.05)
    criterion = HardTripletLoss()
    scale = 64.0
    for step in range(10):
        patches, views = patch_pairs(16, generator)
        loss = criterion(model(patches.half()), model(views.half()))
        master.zero_grad()
        (loss * scale).backward()
        master.step(scale)
        print(f"step {step:2d} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
