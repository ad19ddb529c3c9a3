import torch
from torch import nn


class Trainer:
    def __init__(self, model, config):
        self.model = model
        self.limit = config["max_grad_norm"]
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=config["lr"])
        self.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**14)

    def backward(self, loss):
        self.scaler.scale(loss).backward()
        if self.limit > 0:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.limit)  # <- GS506

    def step(self):
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad(set_to_none=True)

    def train(self, batches):
        for image, label in batches:
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = nn.functional.cross_entropy(self.model(image), label)
            self.backward(loss)
            self.step()


torch.manual_seed(0)
model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 3))
batches = [(torch.randn(6, 1, 8, 8), torch.randint(0, 3, (6,))) for _ in range(5)]
Trainer(model, {"lr": 1e-3, "max_grad_norm": 1.0}).train(batches)
