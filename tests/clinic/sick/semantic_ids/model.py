import torch.nn as nn
from quantizer import ResidualQuantizer


def tower(sizes):
    layers = []
    for i, (a, b) in enumerate(zip(sizes, sizes[1:])):
        layers.append(nn.Linear(a, b))
        if i < len(sizes) - 2:
            layers.append(nn.SiLU())
    return nn.Sequential(*layers)


class ItemTokenizer(nn.Module):
    def __init__(self, features=32, hidden=48, latent=8, levels=3, codes=16):
        super().__init__()
        self.encoder = tower([features, hidden, latent])
        self.quantizer = ResidualQuantizer(levels, codes, latent)
        self.decoder = tower([latent, hidden, features])

    def forward(self, x):
        code, ids, quantize_loss = self.quantizer(self.encoder(x))
        return self.decoder(code), ids, quantize_loss
