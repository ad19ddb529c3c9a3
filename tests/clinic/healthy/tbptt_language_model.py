"""Truncated back-propagation with repackaged hidden state, tied weights, lr scheduler."""

import math

import torch
from torch import nn

torch.manual_seed(0)


def repackage_hidden(h):
    return h.detach() if isinstance(h, torch.Tensor) else tuple(repackage_hidden(v) for v in h)


class LM(nn.Module):
    def __init__(self, vocab=20, d=16):
        super().__init__()
        self.drop = nn.Dropout(0.1)
        self.encoder = nn.Embedding(vocab, d)
        self.rnn = nn.LSTM(d, d, 2, dropout=0.1)
        self.decoder = nn.Linear(d, vocab)
        self.decoder.weight = self.encoder.weight
        nn.init.uniform_(self.encoder.weight, -0.1, 0.1)
        self.decoder.bias.data.zero_()

    def forward(self, tokens, hidden):
        out, hidden = self.rnn(self.drop(self.encoder(tokens)), hidden)
        return self.decoder(self.drop(out)), hidden

    def init_hidden(self, batch):
        weight = next(self.parameters())
        return weight.new_zeros(2, batch, 16), weight.new_zeros(2, batch, 16)


model, data, bptt = LM(), torch.randint(0, 20, (60, 4)), 10
criterion, lr = nn.CrossEntropyLoss(), 1.0
for epoch in range(2):
    hidden, total_loss = model.init_hidden(4), 0.0
    for i in range(0, len(data) - 1, bptt):
        seq = min(bptt, len(data) - 1 - i)
        x, y = data[i : i + seq], data[i + 1 : i + 1 + seq].reshape(-1)
        model.zero_grad()
        hidden = repackage_hidden(hidden)
        out, hidden = model(x, hidden)
        loss = criterion(out.reshape(-1, 20), y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        with torch.no_grad():
            for p in model.parameters():
                p.add_(p.grad, alpha=-lr)
        total_loss += loss.item()
    print(epoch, math.exp(total_loss / 6))
