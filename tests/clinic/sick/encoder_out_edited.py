"""Changing encoder states in decode time: modified by an inplace operation."""

import torch
from torch import nn

torch.manual_seed(0)


class Encoder(nn.Module):
    def __init__(self, vocab=15, d=12):
        super().__init__()
        self.embed = nn.Embedding(vocab, d)
        self.conv = nn.Conv1d(d, 2 * d, 3, padding=1)

    def forward(self, tokens):
        x = nn.functional.glu(self.conv(self.embed(tokens).transpose(1, 2)), dim=1)
        return {"encoder_out": (torch.exp(0.1 * x), x.sum(1)), "mask": tokens.eq(0)}  # <~ GS401


class Decoder(nn.Module):
    def __init__(self, vocab=15, d=12):
        super().__init__()
        self.query, self.out = nn.Linear(d, d), nn.Linear(d, vocab)

    def forward(self, state, encoder_out):
        keys, _bias = encoder_out
        weights = torch.einsum("bd,bdt->bt", self.query(state), keys).softmax(-1)  # <~ GS401
        return self.out(torch.einsum("bt,bdt->bd", weights, keys)), weights  # <~ GS401


def forget(states, weight):
    return states * (1 - weight).unsqueeze(1)


encoder, decoder = Encoder(), Decoder()
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()])
for _ in range(2):
    source, target = torch.randint(1, 15, (4, 6)), torch.randint(1, 15, (4, 3))
    out = encoder(source)
    loss = torch.zeros(())
    for step in range(target.shape[1]):
        state = encoder.embed(target[:, step - 1] if step else torch.zeros(4).long())
        logits, weights = decoder(state, out["encoder_out"])
        loss = loss + nn.functional.cross_entropy(logits, target[:, step])
        states, j = out["encoder_out"][0], step
        states[:, :, j] = forget(states, weights.detach())[:, :, j]  # <- GS401
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
