"""A batch that does not fit is accumulated over micro-batches, and zeroed before each of them."""

import torch
from torch import nn

torch.manual_seed(13)
text = "the quick brown fox jumps over the lazy dog and runs away from it again " * 20
chars = sorted(set(text))
data = torch.tensor([chars.index(c) for c in text])


class CharLM(nn.Module):
    def __init__(self, size, width=32):
        super().__init__()
        self.emb = nn.Embedding(size, width)
        self.gru = nn.GRU(width, 48, batch_first=True)
        self.out = nn.Linear(48, size)

    def forward(self, x):
        h, _ = self.gru(self.emb(x))
        return self.out(h)


class Trainer:
    def __init__(self, model, accumulate=4):
        self.model = model
        self.accumulate = accumulate
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
        self.criterion = nn.CrossEntropyLoss()

    def micro_batch(self, n=8, length=24):
        starts = torch.randint(0, len(data) - length - 1, (n,))
        x = torch.stack([data[i : i + length] for i in starts])
        return x, torch.stack([data[i + 1 : i + length + 1] for i in starts])

    def train_step(self):
        for _ in range(self.accumulate):
            self.optimizer.zero_grad()  # <- GS505
            x, y = self.micro_batch()
            logits = self.model(x)
            loss = self.criterion(logits.flatten(0, 1), y.flatten()) / self.accumulate
            loss.backward()
        self.optimizer.step()


trainer = Trainer(CharLM(len(chars)))
for _step in range(6):
    trainer.train_step()
