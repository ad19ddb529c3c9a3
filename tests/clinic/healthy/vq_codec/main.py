import torch
import torch.nn as nn
import torch.nn.functional as F

from quantizer import EMAQuantizer

CFG = {
    "length": 32,
    "patch": 4,
    "dim": 8,
    "codes": 16,
    "batch": 32,
    "steps": 60,
    "lr": 3e-3,
    "seed": 0,
}


class Codec(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        p = cfg["patch"]
        self.encoder = nn.Sequential(
            nn.Conv1d(1, 32, p, stride=p), nn.ReLU(), nn.Conv1d(32, cfg["dim"], 1)
        )
        self.quantizer = EMAQuantizer(cfg["codes"], cfg["dim"])
        self.decoder = nn.Sequential(
            nn.Conv1d(cfg["dim"], 32, 1), nn.ReLU(), nn.ConvTranspose1d(32, 1, p, stride=p)
        )

    def forward(self, x):
        z = self.encoder(x).transpose(1, 2)
        q, commit, index = self.quantizer(z)
        return self.decoder(q.transpose(1, 2)), commit, index


def waves(cfg, gen):
    t = torch.arange(cfg["length"]) / cfg["length"]
    freq = torch.randint(1, 4, (cfg["batch"], 1), generator=gen)
    phase = torch.rand(cfg["batch"], 1, generator=gen)
    return torch.sin(2 * torch.pi * (freq * t + phase)).unsqueeze(1)


def main():
    torch.manual_seed(CFG["seed"])
    gen = torch.Generator().manual_seed(CFG["seed"])
    model = Codec(CFG)
    optimizer = torch.optim.Adam(model.parameters(), lr=CFG["lr"])
    for step in range(1, CFG["steps"] + 1):
        x = waves(CFG, gen)
        recon, commit, index = model(x)
        recon_loss = F.mse_loss(recon, x)
        optimizer.zero_grad()
        (recon_loss + commit).backward()
        optimizer.step()
        if step % 15 == 0:
            used = index.unique().numel()
            print(
                f"step {step} recon {recon_loss.item():.4f} commit {commit.item():.4f} "
                f"codes used {used}"
            )


if __name__ == "__main__":
    main()
