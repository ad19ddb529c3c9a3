import torch
import torch.nn as nn
from trainer import TrainConfig, Trainer


class ViewTransformer(nn.Module):
    def __init__(self, patch: int = 12, dim: int = 32):
        super().__init__()
        self.view_tokens = nn.Linear(patch + 6, dim)
        self.ray_tokens = nn.Linear(6, dim)
        self.block = nn.TransformerEncoderLayer(dim, 4, 2 * dim, 0.0, batch_first=True)
        self.colour = nn.Linear(dim, 3)

    def forward(self, views, rays):
        tokens = torch.cat([self.view_tokens(views), self.ray_tokens(rays)], dim=1)
        return self.colour(self.block(tokens)[:, views.size(1) :])


def scenes(steps: int, batch: int = 4):
    for index in range(steps):
        views = torch.randn(batch, 8, 18)
        rays = torch.randn(batch, 10, 6)
        exposure = 12.0 if index == 5 else 1.0
        light = views[:, :, :3].mean(1, keepdim=True)
        yield views, rays, exposure * (torch.sigmoid(rays[..., :3]) + light)


def main():
    torch.manual_seed(4)
    cfg = TrainConfig()
    Trainer(ViewTransformer(), cfg).fit(scenes(cfg.steps))


if __name__ == "__main__":
    main()
