import torch
from torch import nn

from slots import SlotAttention


class ObjectAutoencoder(nn.Module):
    def __init__(self, size, num_slots=3, dim=16):
        super().__init__()
        self.size = size
        self.encoder = nn.Sequential(
            nn.Conv2d(1, dim, 3, padding=1), nn.ReLU(), nn.Conv2d(dim, dim, 3, padding=1)
        )
        self.position = nn.Parameter(0.02 * torch.randn(1, size * size, dim))
        self.slot_attention = SlotAttention(num_slots, dim)
        self.decoder = nn.Sequential(nn.Linear(dim, 32), nn.ReLU(), nn.Linear(32, 2))
        self.grid = nn.Parameter(0.1 * torch.randn(1, 1, size * size, dim))

    def forward(self, image):
        features = self.encoder(image).flatten(2).transpose(1, 2) + self.position
        slots = self.slot_attention(features)
        decoded = self.decoder(slots.unsqueeze(2) + self.grid)
        colour, mask = decoded.unbind(-1)
        mask = mask.softmax(dim=1)
        recon = (mask * colour).sum(1).view(-1, 1, self.size, self.size)
        return recon, mask
