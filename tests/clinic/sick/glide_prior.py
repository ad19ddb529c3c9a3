import math

import torch
import torch.nn as nn
import torch.nn.functional as F

CONFIG = dict(
    image_size=8, channels=8, timesteps=50, lr=1e-4, steps=8, batch_size=4, uncond_p=0.2, seed=12
)


def timestep_embedding(t, dim):
    half = dim // 2
    freqs = torch.exp(-math.log(10000.0) * torch.arange(half) / half)
    args = t[:, None].float() * freqs[None]
    return torch.cat([torch.cos(args), torch.sin(args)], dim=-1)


class TextConditionedDenoiser(nn.Module):
    def __init__(self, channels, vocab=32):
        super().__init__()
        self.tokens = nn.Embedding(vocab, channels)
        self.time = nn.Sequential(
            nn.Linear(channels, channels), nn.SiLU(), nn.Linear(channels, channels)
        )
        self.inp = nn.Conv2d(3, channels, 3, padding=1)
        self.mid = nn.Conv2d(channels, channels, 3, padding=1)
        self.norm = nn.GroupNorm(2, channels)
        self.out = nn.Conv2d(channels, 3, 3, padding=1)
        self.channels = channels

    def forward(self, x, t, tokens):
        emb = timestep_embedding(t, self.channels).to(x.dtype)
        cond = self.time(emb) + self.tokens(tokens).mean(1)
        h = self.inp(x) + cond[:, :, None, None]
        h = h + self.mid(F.silu(self.norm(h)))
        return self.out(F.silu(h))


class Diffusion:
    def __init__(self, timesteps):
        self.alpha_bar = torch.cumprod(1 - torch.linspace(1e-3, 0.05, timesteps), 0)

    def q_sample(self, x0, t, noise):
        a = self.alpha_bar[t].view(-1, 1, 1, 1).to(x0.dtype)
        return a.sqrt() * x0 + (1 - a).sqrt() * noise


def load_model(config, use_fp16=True):
    model = TextConditionedDenoiser(config["channels"])
    if use_fp16:
        model = model.half()  # <~ GS106
    return model.train()


def base_train_step(model, diffusion, batch, config):
    tokens, images = batch
    dtype = next(model.parameters()).dtype
    images = images.to(dtype)
    drop = torch.rand(len(tokens)) < config["uncond_p"]
    tokens = tokens.masked_fill(drop[:, None], 0)
    t = torch.randint(0, config["timesteps"], (len(images),))
    noise = torch.randn_like(images)
    prediction = model(diffusion.q_sample(images, t, noise), t, tokens)
    return F.mse_loss(prediction.float(), noise.float())


def batches(config):
    for _ in range(config["steps"]):
        tokens = torch.randint(1, 32, (config["batch_size"], 6))
        base = tokens.float().mean(1).view(-1, 1, 1, 1) / 16 - 1
        size = config["image_size"]
        yield tokens, base + 0.1 * torch.randn(config["batch_size"], 3, size, size)


def main():
    torch.manual_seed(CONFIG["seed"])
    model = load_model(CONFIG)
    diffusion = Diffusion(CONFIG["timesteps"])
    optimizer = torch.optim.AdamW(model.parameters(), lr=CONFIG["lr"])  # <- GS106
    for step, batch in enumerate(batches(CONFIG)):
        loss = base_train_step(model, diffusion, batch, CONFIG)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
