import copy

import torch
import torch.nn.functional as F
from torch import nn

CFG = {"dim": 32, "hidden": 48, "proj": 16, "tau": 0.9, "steps": 30, "batch": 64, "lr": 2e-3}


def mlp(i, h, o):
    return nn.Sequential(nn.Linear(i, h), nn.BatchNorm1d(h), nn.ReLU(), nn.Linear(h, o))


@torch.no_grad()
def update_moving_average(slow, fast, tau):
    for p_slow, p_fast in zip(slow.parameters(), fast.parameters()):
        p_slow.mul_(tau).add_(p_fast, alpha=1 - tau)
    for b_slow, b_fast in zip(slow.buffers(), fast.buffers()):
        b_slow.copy_(b_fast)


class BYOL(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.tau = cfg["tau"]
        self.online = mlp(cfg["dim"], cfg["hidden"], cfg["proj"])
        self.target = copy.deepcopy(self.online)
        self.target.requires_grad_(False)
        self.predictor = mlp(cfg["proj"], cfg["hidden"], cfg["proj"])

    def regression(self, a, b):
        online = F.normalize(self.predictor(self.online(a)), dim=1)
        with torch.no_grad():
            target = F.normalize(self.target(b), dim=1)
        return 2 - 2 * (online * target).sum(1)

    def forward(self, view1, view2):
        return (self.regression(view1, view2) + self.regression(view2, view1)).mean()

    def after_step(self):
        update_moving_average(self.online, self.target, self.tau)  # <- GS521


class Augment:
    def __init__(self, noise=0.3, drop=0.2):
        self.noise, self.drop = noise, drop

    def __call__(self, x):
        keep = (torch.rand_like(x) > self.drop).float()
        return keep * x + self.noise * torch.randn_like(x)


def signal_batches(cfg):
    t = torch.linspace(0, 6.28, cfg["dim"])
    for _ in range(cfg["steps"]):
        freq = torch.randint(1, 5, (cfg["batch"], 1)).float()
        yield torch.sin(freq * t + torch.rand(cfg["batch"], 1))


def main():
    torch.manual_seed(14)
    model = BYOL(CFG)
    augment = Augment()
    params = list(model.online.parameters()) + list(model.predictor.parameters())
    optimizer = torch.optim.Adam(params, lr=CFG["lr"])
    for step, x in enumerate(signal_batches(CFG)):
        loss = model(augment(x), augment(x))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        model.after_step()
        if step % 6 == 0:
            print(f"step {step:3d} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
