import torch
import torch.nn.functional as F
from ema import EMAModel
from model import Forecaster, make_series, windows

CONFIG = {"window": 24, "horizon": 6, "batch": 32, "steps": 36, "lr": 3e-3, "validate_every": 4}


class Trainer:
    def __init__(self, cfg):
        self.cfg = cfg
        series = make_series()
        cut = int(0.75 * len(series))
        self.train_x, self.train_y = windows(series[:cut], cfg["window"], cfg["horizon"])
        self.valid_x, self.valid_y = windows(series[cut:], cfg["window"], cfg["horizon"])
        self.model = Forecaster(cfg["window"], cfg["horizon"])
        self.ema_model = EMAModel(self.model.parameters())
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=cfg["lr"])

    def train_step(self):
        rows = torch.randint(len(self.train_x), (self.cfg["batch"],))
        loss = F.smooth_l1_loss(self.model(self.train_x[rows]), self.train_y[rows])
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.ema_model.step(self.model.parameters())
        return loss.item()

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        self.ema_model.store(self.model.parameters())
        self.ema_model.copy_to(self.model.parameters())  # <- GS000
        loss = F.smooth_l1_loss(self.model(self.valid_x), self.valid_y).item()
        self.model.train()
        return loss

    def fit(self):
        for step in range(1, self.cfg["steps"] + 1):
            loss = self.train_step()
            if step % self.cfg["validate_every"] == 0:
                print(f"step {step:2d} train {loss:.4f} valid {self.validate():.4f}")


def main():
    torch.manual_seed(4)
    Trainer(CONFIG).fit()


if __name__ == "__main__":
    main()
