from collections import deque

import torch
import torch.nn as nn


class WakeWordNet(nn.Module):
    def __init__(self, frames=16, features=12, hidden=24):
        super().__init__()
        self.flatten = nn.Flatten()
        self.layer1 = nn.Linear(frames * features, hidden)
        self.norm1 = nn.LayerNorm(hidden)
        self.layer2 = nn.Linear(hidden, hidden)
        self.norm2 = nn.LayerNorm(hidden)
        self.last = nn.Linear(hidden, 1)

    def forward(self, x):
        x = torch.relu(self.norm1(self.layer1(self.flatten(x))))
        x = torch.relu(self.norm2(self.layer2(x)))
        return torch.sigmoid(self.last(x))


class WakeWordTrainer:
    """Keeps only the hard examples of a batch and waits until enough were gathered."""

    def __init__(self, lr=3e-3, needed=48):
        self.model = WakeWordNet()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=lr)
        self.loss = nn.functional.binary_cross_entropy
        self.needed = needed
        self.history = deque(maxlen=50)

    def lr_warmup_cosine(self, step, total, target=3e-3, warmup=4):
        if step < warmup:
            return target * (step + 1) / warmup
        fraction = torch.tensor((step - warmup) / max(1, total - warmup))
        return (0.5 * target * (1 + torch.cos(torch.pi * fraction))).item()

    def train_model(self, batches, negative_weight=2.0):
        accumulated_samples, accumulation_steps, updates = 0, 1, 0
        for step, (x, y) in enumerate(batches):
            for group in self.optimizer.param_groups:
                group["lr"] = self.lr_warmup_cosine(step, len(batches))

            self.optimizer.zero_grad()  # <- GS505
            predictions = self.model(x).squeeze(1)
            hard = ((y == 1) & (predictions < 0.999)) | ((y == 0) & (predictions >= 0.001))
            x_hard, y_hard = x[hard], y[hard]
            if len(x_hard) == 0:
                continue

            predictions = self.model(x_hard).squeeze(1)
            weight = torch.where(y_hard == 1, 1.0, negative_weight)
            loss = self.loss(predictions, y_hard, weight) * len(x_hard) / self.needed
            loss.backward()
            accumulated_samples += len(x_hard)

            if accumulated_samples < self.needed:
                accumulation_steps += 1
            else:
                self.optimizer.step()
                updates += 1
                self.history.append(loss.item() * self.needed / len(x_hard))
                accumulated_samples, accumulation_steps = 0, 1
        return updates

    @torch.no_grad()
    def accuracy(self, batches):
        hits = sum(((self.model(x).squeeze(1) > 0.5) == y.bool()).sum().item() for x, y in batches)
        return hits / sum(len(y) for _, y in batches)


def clips(count, size, generator):
    word = torch.randn(16, 12, generator=generator)
    batches = []
    for _ in range(count):
        y = (torch.rand(size, generator=generator) < 0.4).float()
        x = torch.randn(size, 16, 12, generator=generator) + 0.4 * y[:, None, None] * word
        batches.append((x, y))
    return batches


def main():
    torch.manual_seed(21)
    batches = clips(36, 16, torch.Generator().manual_seed(4))
    trainer = WakeWordTrainer()
    updates = trainer.train_model(batches[:32])
    print(f"{updates} updates, last losses {[round(v, 3) for v in list(trainer.history)[-3:]]}")
    print(f"held out accuracy {trainer.accuracy(batches[32:]):.3f}")


if __name__ == "__main__":
    main()
