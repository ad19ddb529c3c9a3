import torch
import torch.nn.functional as F
from torch import nn

from loss import PerceptualLoss

CONFIG = {"batch": 4, "frames": 4, "size": 8, "steps": 12, "lr": 3e-3, "perceptual_weight": 2.0}


class VideoTokenizer(nn.Module):
    def __init__(self, width=8, levels=9):
        super().__init__()
        self.levels = levels
        self.encoder = nn.Sequential(
            nn.Conv3d(1, width, 3, stride=(1, 2, 2), padding=1),
            nn.SiLU(),
            nn.Conv3d(width, 4, 3, padding=1),
        )
        self.decoder = nn.Sequential(
            nn.Conv3d(4, width, 3, padding=1),
            nn.SiLU(),
            nn.Upsample(scale_factor=(1, 2, 2)),
            nn.Conv3d(width, 1, 3, padding=1),
        )

    def quantize(self, z):
        z = torch.tanh(z) * (self.levels - 1) / 2
        return z + (z.round() - z).detach()

    def forward(self, video):
        return self.decoder(self.quantize(self.encoder(video)))


def moving_squares(count, frames, size):
    video = torch.zeros(count, 1, frames, size, size)
    for clip in video:
        y, x = torch.randint(0, size - 3, (2,)).tolist()
        for t in range(frames):
            left = (x + t) % (size - 2)
            clip[0, t, y : y + 3, left : left + 3] = 1.0
    return video


def main():
    torch.manual_seed(0)
    tokenizer = VideoTokenizer()
    perceptual = PerceptualLoss()
    optimizer = torch.optim.AdamW(tokenizer.parameters(), lr=CONFIG["lr"])
    for step in range(CONFIG["steps"]):
        video = moving_squares(CONFIG["batch"], CONFIG["frames"], CONFIG["size"])
        recon = tokenizer(video)
        rec_loss = F.mse_loss(recon, video)
        perc_loss = perceptual(recon, video)
        loss = rec_loss + CONFIG["perceptual_weight"] * perc_loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 4 == 0:
            print(f"step {step} rec {rec_loss.item():.4f} perceptual {perc_loss.item():.4f}")


if __name__ == "__main__":
    main()
