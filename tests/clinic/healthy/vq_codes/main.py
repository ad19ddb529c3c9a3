import torch
import torch.nn.functional as F
from torch import nn

from quantizer import EMAQuantizer

CFG = dict(seed=4, frame=24, dim=8, codes=16, beta=0.25, lr=2e-3, batch=128, steps=60)


class VQAutoencoder(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(cfg["frame"], 48), nn.ReLU(), nn.Linear(48, cfg["dim"])
        )
        self.quantizer = EMAQuantizer(cfg["codes"], cfg["dim"])
        self.decoder = nn.Sequential(
            nn.Linear(cfg["dim"], 48), nn.ReLU(), nn.Linear(48, cfg["frame"])
        )

    def forward(self, x):
        q, commit, idx = self.quantizer(self.encoder(x))
        return self.decoder(q), commit, idx


def frames(n, length, gen):
    """Short frames of one of a dozen tones."""
    tone = torch.randint(1, 7, (n, 1), generator=gen)
    phase = torch.randint(0, 2, (n, 1), generator=gen) * torch.pi / 2
    t = torch.arange(length) / length
    return torch.sin(2 * torch.pi * tone * t + phase) + 0.05 * torch.randn(n, length, generator=gen)


def perplexity(idx, num_codes):
    p = torch.bincount(idx, minlength=num_codes).float() / len(idx)
    return torch.exp(-(p * (p + 1e-10).log()).sum()).item()


def main(cfg):
    torch.manual_seed(cfg["seed"])
    gen = torch.Generator().manual_seed(cfg["seed"])
    model = VQAutoencoder(cfg)
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg["lr"])
    for step in range(cfg["steps"]):
        x = frames(cfg["batch"], cfg["frame"], gen)
        recon, commit, idx = model(x)
        rec_loss = F.mse_loss(recon, x)
        loss = rec_loss + cfg["beta"] * commit
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0 or step == cfg["steps"] - 1:
            print(
                f"step {step:3d}  rec {rec_loss.item():.4f}  commit {commit.item():.4f}  "
                f"perplexity {perplexity(idx, cfg['codes']):.2f}"
            )


if __name__ == "__main__":
    main(CFG)
