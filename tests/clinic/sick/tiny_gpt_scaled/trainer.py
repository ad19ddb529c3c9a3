from dataclasses import dataclass

import torch
from torch.nn.utils import clip_grad_norm_


@dataclass
class TrainerConfig:
    max_iters: int = 14
    batch_size: int = 8
    learning_rate: float = 0.3
    momentum: float = 0.9
    grad_norm_clip: float = 1.0
    use_amp: bool = True


class Trainer:
    def __init__(self, cfg, model, dataset):
        self.cfg = cfg
        self.model = model
        self.dataset = dataset
        self.optimizer = torch.optim.SGD(
            model.parameters(), lr=cfg.learning_rate, momentum=cfg.momentum
        )
        self.scaler = torch.amp.GradScaler("cpu", enabled=cfg.use_amp)

    def _run_batch(self, x, y):
        with torch.amp.autocast("cpu", dtype=torch.bfloat16, enabled=self.cfg.use_amp):
            _, loss = self.model(x, y)
        self.optimizer.zero_grad(set_to_none=True)
        if self.cfg.use_amp:
            self.scaler.scale(loss).backward()
            clip_grad_norm_(self.model.parameters(), self.cfg.grad_norm_clip)  # <- GS506
            self.scaler.step(self.optimizer)  # <~ GS506
            self.scaler.update()
        else:
            loss.backward()
            clip_grad_norm_(self.model.parameters(), self.cfg.grad_norm_clip)
            self.optimizer.step()
        return loss.item()

    def train(self):
        self.model.train()
        for it in range(self.cfg.max_iters):
            x, y = self.dataset.batch(self.cfg.batch_size)
            loss = self._run_batch(x, y)
            if it % 5 == 0:
                print(f"iter {it:2d} train loss {loss:.5f} scale {self.scaler.get_scale():.0f}")
