"""Source-free adaptation of a segmenter: the output layer keeps source weights as prototype."""

import argparse
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


class UNet(nn.Module):
    def __init__(self, cin=1, width=12, classes=3):
        super().__init__()
        self.inc = nn.Sequential(
            nn.Conv2d(cin, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU()
        )
        self.down = nn.Sequential(
            nn.MaxPool2d(2), nn.Conv2d(width, 2 * width, 3, padding=1), nn.ReLU()
        )
        self.up = nn.Sequential(
            nn.Conv2d(3 * width, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU()
        )
        self.outc = nn.Conv2d(width, classes, 1)

    def forward(self, x):
        a = self.inc(x)
        b = F.interpolate(self.down(a), scale_factor=2.0)
        feats = self.up(torch.cat([a, b], dim=1))
        return feats, self.outc(feats)


def organs(n, seed, shift=0.0, gain=1.0):
    g = torch.Generator().manual_seed(seed)
    mask = torch.zeros(n, 16, 16, dtype=torch.long)
    for i in range(n):
        y, x = torch.randint(1, 8, (2,), generator=g).tolist()
        mask[i, y : y + 7, x : x + 4] = 1
        mask[i, y : y + 7, x + 4 : x + 7] = 2
    image = mask.float().unsqueeze(1) * gain + shift + 0.3 * torch.randn(n, 1, 16, 16, generator=g)
    return image, mask


class PFATrainer:
    def __init__(self, source_model, args):
        self.model = copy.deepcopy(source_model)
        self.model.outc.requires_grad = False  # <- GS332
        self.prototypes = source_model.outc.weight.detach().flatten(1)
        self.optimizer = torch.optim.SGD(
            [p for p in self.model.parameters() if p.requires_grad], lr=args.lr, momentum=0.9
        )

    def step(self, image):
        feats, logits = self.model(image)
        entropy = -(logits.softmax(1) * logits.log_softmax(1)).sum(1).mean()
        sim = torch.einsum(
            "bchw,kc->bkhw", F.normalize(feats, dim=1), F.normalize(self.prototypes, dim=1)
        )
        align = F.cross_entropy(5.0 * sim, logits.argmax(1))
        loss = entropy + 0.5 * align
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


def pretrain(model, steps):
    image, mask = organs(16, 0)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(steps):
        loss = F.cross_entropy(model(image)[1], mask)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"source loss {loss.item():.4f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--lr", type=float, default=0.02)
    args = parser.parse_args()
    torch.manual_seed(0)
    source = UNet()
    pretrain(source, 5)
    trainer = PFATrainer(source, args)
    image, mask = organs(16, 1, shift=0.3, gain=0.8)
    for step in range(args.steps):
        loss = trainer.step(image)
        if step % 10 == 0 or step == args.steps - 1:
            drift = (trainer.model.outc.weight - source.outc.weight).norm().item()
            print(f"adapt {step:02d} loss {loss:.4f} drift of outc {drift:.5f}")


if __name__ == "__main__":
    main()
