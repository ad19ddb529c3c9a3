"""Mixed precision with a gradient scaler, accumulation, and a leftover group of batches."""

import torch
import torch.nn.functional as F
from torch import nn


class Regressor(nn.Module):
    def __init__(self, inputs=12, hidden=48):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(inputs, hidden), nn.GELU(), nn.LayerNorm(hidden), nn.Linear(hidden, 1)
        )

    def forward(self, x):
        return self.net(x).squeeze(-1)


class MixedTrainer:
    def __init__(self, model, accumulate=3, clip=1.0, lr=5e-3):
        self.model = model
        self.accumulate = accumulate
        self.clip = clip
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**22, growth_interval=200)
        self.skipped = 0

    def apply(self):
        self.scaler.unscale_(self.optimizer)
        nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
        before = self.scaler.get_scale()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.skipped += self.scaler.get_scale() < before
        self.optimizer.zero_grad(set_to_none=True)

    def epoch(self, x, y, batch=16):
        order = torch.randperm(len(x)).split(batch)
        total = 0.0
        for i, idx in enumerate(order):
            group_start = i - i % self.accumulate
            group = min(self.accumulate, len(order) - group_start)
            with torch.autocast("cpu", dtype=torch.float16):
                pred = self.model(x[idx])
            loss = F.mse_loss(pred.float(), y[idx])
            self.scaler.scale(loss / group).backward()
            total += loss.item() * len(idx)
            if i - group_start + 1 == group:
                self.apply()
        return total / len(x)


def main():
    torch.manual_seed(20)
    x = torch.randn(170, 12)
    y = torch.sin(x[:, 0]) + 0.5 * x[:, 1] * x[:, 2]
    trainer = MixedTrainer(Regressor())
    for epoch in range(5):
        loss = trainer.epoch(x, y)
        print(f"epoch {epoch} loss {loss:.4f} skipped {trainer.skipped}")


if __name__ == "__main__":
    main()
