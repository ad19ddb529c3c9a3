import torch
import torch.nn.functional as F

from model import VQVAE, sample_waves

CONFIG = {"steps": 60, "batch_size": 128, "lr": 2e-3, "log_every": 20, "seed": 4}


def train(cfg):
    torch.manual_seed(cfg["seed"])
    model = VQVAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg["lr"])
    recon_hist = []
    for step in range(1, cfg["steps"] + 1):
        x = sample_waves(cfg["batch_size"])
        recon, commit, perplexity = model(x)
        recon_loss = F.mse_loss(recon, x)
        loss = recon_loss + commit
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        recon_hist.append(recon_loss.detach())
        if step % cfg["log_every"] == 0:
            recent = torch.stack(recon_hist[-cfg["log_every"] :]).mean().item()
            print(
                f"step {step:4d}  recon {recent:.4f}  commit {commit.item():.4f}  "
                f"perplexity {perplexity.item():.1f}"
            )
    return model


if __name__ == "__main__":
    train(CONFIG)
