"""An epoch takes as long as it should, and the loss hardly moves."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class Tagger(nn.Module):
    def __init__(self, words=40, tags=5):
        super().__init__()
        self.embed = nn.Embedding(words, 12)
        self.rnn = nn.GRU(12, 16, batch_first=True)
        self.out = nn.Linear(16, tags)

    def forward(self, tokens):
        return self.out(self.rnn(self.embed(tokens))[0])


class Trainer:
    def __init__(self, model, loader):
        self.model, self.loader = model, loader
        self.optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
        self.criterion = nn.CrossEntropyLoss()

    def batch_loss(self, tokens, tags):
        scores = self.model(tokens)
        return self.criterion(scores.flatten(0, 1), tags.flatten())

    def epoch(self):
        self.model.train()
        total = 0.0
        for tokens, tags in self.loader:
            self.optimizer.zero_grad()
            loss = self.batch_loss(tokens, tags)
            total += loss.item() / len(self.loader)
        loss.backward()  # <- GS523
        nn.utils.clip_grad_norm_(self.model.parameters(), 5.0)
        self.optimizer.step()
        return total


tokens = torch.randint(0, 40, (48, 9))
trainer = Trainer(Tagger(), DataLoader(TensorDataset(tokens, tokens % 5), batch_size=8))
for number in range(4):
    print(number, f"{trainer.epoch():.4f}")
