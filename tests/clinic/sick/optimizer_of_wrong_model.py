"""Seq2seq: copy and paste, and the decoder output never gets better than noise."""

import torch
from torch import nn, optim

torch.manual_seed(0)

SRC, TGT, HID = 12, 14, 16


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.rnn = nn.Embedding(SRC, HID), nn.GRU(HID, HID, batch_first=True)

    def forward(self, s):
        return self.rnn(self.emb(s))[1]


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(TGT, HID)  # <- GS307
        self.rnn = nn.GRU(HID, HID, batch_first=True)  # <~ GS307
        self.out = nn.Linear(HID, TGT)  # <~ GS307

    def forward(self, t, h):
        o, h = self.rnn(self.emb(t), h)
        return self.out(o), h


def train_iters(encoder, decoder, n_iters, lr=0.01):
    encoder_optimizer = optim.SGD(encoder.parameters(), lr=lr)
    decoder_optimizer = optim.SGD(encoder.parameters(), lr=lr)  # <~ GS307
    criterion = nn.CrossEntropyLoss()
    for it in range(1, n_iters + 1):
        source, target = torch.randint(0, SRC, (5, 7)), torch.randint(0, TGT, (5, 6))
        encoder_optimizer.zero_grad()
        decoder_optimizer.zero_grad()
        logits, _ = decoder(target[:, :-1], encoder(source))
        loss = criterion(logits.transpose(1, 2), target[:, 1:])
        loss.backward()
        encoder_optimizer.step()
        decoder_optimizer.step()
        print(it, loss.item())


train_iters(Encoder(), Decoder(), 4)
