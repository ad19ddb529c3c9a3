from torch import nn

from quantizer import ResidualQuantizer


class Codec(nn.Module):
    def __init__(self, channels=12, dim=8, codes=16, stages=4):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv1d(1, channels, 5, stride=2, padding=2),
            nn.ELU(),
            nn.Conv1d(channels, dim, 5, stride=2, padding=2),
        )
        self.quantizer = ResidualQuantizer(dim, codes, stages)
        self.decoder = nn.Sequential(
            nn.ConvTranspose1d(dim, channels, 4, stride=2, padding=1),
            nn.ELU(),
            nn.ConvTranspose1d(channels, 1, 4, stride=2, padding=1),
        )

    def forward(self, wave):
        latent = self.encoder(wave).transpose(1, 2)
        quantized, indices, codebook, commit = self.quantizer(latent)
        return self.decoder(quantized.transpose(1, 2)), indices, codebook, commit
