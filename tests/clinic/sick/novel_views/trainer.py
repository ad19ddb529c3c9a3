from dataclasses import dataclass

import torch
import torch.nn.functional as F


@dataclass
class TrainConfig:
    lr: float = 2e-3
    grad_clip: float = 1.0
    skip_above: float = 5.0
    steps: int = 12
    log_every: int = 3


class Trainer:
    def __init__(self, model, cfg: TrainConfig):
        self.model, self.cfg = model, cfg
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr, betas=(0.9, 0.95))
        self.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
        self.skipped = 0

    def step(self, views, rays, colours) -> float:
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            rendered = self.model(views, rays)
        loss = F.mse_loss(rendered.float(), colours)
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(self.optimizer)  # <~ GS000
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.cfg.grad_clip)
        if norm < self.cfg.skip_above:
            self.scaler.step(self.optimizer)
            self.scaler.update()  # <- GS000
        else:
            self.skipped += 1
            print(f"grad norm {norm:.2f} is above {self.cfg.skip_above}, skipping this step")
        return loss.item()

    def fit(self, batches):
        for index, batch in enumerate(batches):
            loss = self.step(*batch)
            if index % self.cfg.log_every == 0:
                print(f"step {index}: loss {loss:.4f}  scale {self.scaler.get_scale():.0f}")
        print(f"done, {self.skipped} steps skipped")
