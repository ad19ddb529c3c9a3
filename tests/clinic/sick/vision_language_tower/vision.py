import torch
import torch.nn as nn


class PatchBlock(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.mix = nn.Linear(16, 16)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        x = x + self.mix(self.norm(x).transpose(1, 2)).transpose(1, 2)
        return x + self.mlp(x)


class VisionTower(nn.Module):
    """A pretrained image encoder with a choice of the layer that is handed on."""

    def __init__(self, dim=12, select_layer=-1):
        super().__init__()
        self.embed = nn.Conv2d(3, dim, 4, stride=4)
        self.blocks = nn.ModuleList(PatchBlock(dim) for _ in range(3))
        self.select_layer = select_layer
        self.hidden_size = dim

    def feature_select(self, states):
        return states[self.select_layer]

    @torch.no_grad()  # <- GS304
    def forward(self, images):
        x = self.embed(images).flatten(2).transpose(1, 2)
        states = [x]
        for block in self.blocks:
            states.append(block(states[-1]))
        return self.feature_select(states)


class Connector(nn.Module):
    def __init__(self, vision_dim, text_dim):
        super().__init__()
        self.proj = nn.Sequential(
            nn.Linear(vision_dim, text_dim), nn.GELU(), nn.Linear(text_dim, text_dim)
        )

    def forward(self, x):
        return self.proj(x)
