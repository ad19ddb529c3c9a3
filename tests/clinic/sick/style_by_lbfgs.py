from types import SimpleNamespace

import torch
import torch.nn as nn
import torch.nn.functional as F

args = SimpleNamespace(size=16, steps=6, style_weight=50.0, content_weight=1.0, lr=0.5, seed=0)


class FeatureExtractor(nn.Module):
    """Stands in for the first layers of a pretrained classifier."""

    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(
            [
                nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU()),
                nn.Sequential(nn.AvgPool2d(2), nn.Conv2d(8, 12, 3, padding=1), nn.ReLU()),
            ]
        )
        for p in self.parameters():
            p.requires_grad_(False)

    def forward(self, x):
        features = []
        for block in self.blocks:
            x = block(x)
            features.append(x)
        return features


def gram(x):
    flat = x.flatten(2)
    return flat @ flat.transpose(1, 2) / flat.shape[-1]


class StyleTransfer:
    def __init__(self, content, style):
        self.net = FeatureExtractor().eval()
        self.content_target = self.net(content)[-1]
        self.style_targets = [gram(f) for f in self.net(style)]
        self.image = content.clone().requires_grad_(True)

    def configure_optimizers(self):
        return torch.optim.LBFGS([self.image], lr=args.lr, max_iter=8, history_size=10)

    def loss(self):
        features = self.net(self.image)
        content = F.mse_loss(features[-1], self.content_target)
        style = sum(F.mse_loss(gram(f), t) for f, t in zip(features, self.style_targets))
        return args.content_weight * content + args.style_weight * style


class ManualLoop:
    """The small part of a trainer that this task needs."""

    def __init__(self, max_steps):
        self.max_steps = max_steps
        self.logged = []

    def run_closure(self, module):
        loss = module.loss()
        loss.backward()
        return loss

    def fit(self, module):
        optimizer = module.configure_optimizers()
        for step in range(self.max_steps):
            optimizer.zero_grad()  # <~ GS501
            loss = optimizer.step(lambda: self.run_closure(module))  # <- GS501
            self.logged.append(loss.item())
            with torch.no_grad():
                module.image.clamp_(-2, 2)
            print(f"step {step} loss {loss.item():.5f}")
        return self.logged


def main():
    torch.manual_seed(args.seed)
    grid = torch.linspace(-1, 1, args.size)
    content = torch.stack([grid.expand(args.size, -1), grid[:, None].expand(-1, args.size)])
    content = torch.cat([content, content.mean(0, keepdim=True)])[None].contiguous()
    style = torch.sin(6 * content + torch.randn(1, 3, 1, 1))
    module = StyleTransfer(content, style)
    logged = ManualLoop(args.steps).fit(module)
    print(f"first {logged[0]:.4f} last {logged[-1]:.4f}")


if __name__ == "__main__":
    main()
