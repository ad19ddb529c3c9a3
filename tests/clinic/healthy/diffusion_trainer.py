"""A small denoising diffusion model on a spiral, with the usual trainer around it."""

import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.data import DataLoader, TensorDataset


class Denoiser(nn.Module):
    def __init__(self, hidden=48, steps=50):
        super().__init__()
        self.time = nn.Embedding(steps, hidden)
        self.inp = nn.Linear(2, hidden)
        self.mid = nn.Sequential(nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU())
        self.out = nn.Linear(hidden, 2)
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.out.bias)

    def forward(self, x, t):
        return self.out(self.mid(self.inp(x) + self.time(t)))


class Trainer:
    def __init__(self, model, loader, lr=1e-2, accumulate=3, max_norm=1.0, steps=50):
        self.model, self.loader = model, loader
        self.accumulate, self.max_norm = accumulate, max_norm
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=0.0)
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(
            self.optimizer, lambda step: min(1.0, step / 4)
        )
        self.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**20, growth_interval=100)
        self.ema = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.8))
        self.ema.requires_grad_(False)
        betas = torch.linspace(1e-3, 0.15, steps)
        self.signal = (1 - betas).cumprod(0)

    def loss(self, model, x):
        t = torch.randint(0, len(self.signal), (len(x),))
        noise = torch.randn_like(x)
        signal = self.signal[t].unsqueeze(1)
        noisy = signal.sqrt() * x + (1 - signal).sqrt() * noise
        with torch.autocast("cpu", dtype=torch.float16):
            predicted = model(noisy, t)
        return F.mse_loss(predicted.float(), noise)

    def apply_gradients(self):
        self.scaler.unscale_(self.optimizer)
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.max_norm)
        scale = self.scaler.get_scale()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad(set_to_none=True)
        skipped = self.scaler.get_scale() < scale
        if not skipped:
            self.scheduler.step()
            self.ema.update_parameters(self.model)
        return norm.item(), skipped

    def epoch(self):
        losses, norms, skips = [], [], 0
        n = len(self.loader)
        for i, (x,) in enumerate(self.loader):
            window_start = i - i % self.accumulate
            window = min(self.accumulate, n - window_start)
            loss = self.loss(self.model, x)
            self.scaler.scale(loss / window).backward()
            losses.append(loss.detach())
            if i + 1 == window_start + window:
                norm, skipped = self.apply_gradients()
                skips += skipped
                if not skipped:
                    norms.append(norm)
        return torch.stack(losses).mean().item(), norms, skips

    @torch.no_grad()
    def validate(self, x):
        torch.manual_seed(123)
        return self.loss(self.model, x).item(), self.loss(self.ema, x).item()


def spiral(n):
    angle = 3 * math.pi * torch.rand(n).sqrt()
    radius = angle / (3 * math.pi)
    points = torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1)
    return 2 * points + 0.03 * torch.randn(n, 2)


def main():
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(spiral(250)), batch_size=32, shuffle=True)
    trainer = Trainer(Denoiser(), loader)
    held_out = spiral(400)
    for epoch in range(8):
        loss, norms, skips = trainer.epoch()
        largest = max(norms, default=float("nan"))
        print(f"epoch {epoch} loss {loss:.3f} largest norm {largest:.2f} skipped {skips}")
    raw, averaged = trainer.validate(held_out)
    print(f"validation raw {raw:.3f} ema {averaged:.3f}")


if __name__ == "__main__":
    main()
