import torch
import torch.nn as nn
import torch.nn.functional as F


class SentenceEncoder(nn.Module):
    def __init__(self, vocab: int, dim: int, hidden: int, latent: int):
        super().__init__()
        self.hidden = hidden
        self.embed = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, hidden, batch_first=True, bidirectional=True)
        self.to_mean = nn.Linear(2 * hidden, latent)
        self.to_logvar = nn.Linear(2 * hidden, latent)

    def forward(self, tokens):
        batch = tokens.size(0)
        _, hidden = self.rnn(self.embed(tokens))
        hidden = hidden.view(batch, 2 * self.hidden)  # <- GS531
        return self.to_mean(hidden), self.to_logvar(hidden)


class SentenceDecoder(nn.Module):
    def __init__(self, vocab: int, dim: int, hidden: int, latent: int):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.start = nn.Linear(latent, hidden)
        self.rnn = nn.GRU(dim, hidden, batch_first=True)
        self.out = nn.Linear(hidden, vocab)

    def forward(self, latent, tokens):
        state = torch.tanh(self.start(latent))[None]
        states, _ = self.rnn(self.embed(tokens), state)
        return self.out(states)


class SentenceVAE(nn.Module):
    def __init__(self, vocab=60, dim=16, hidden=24, latent=8):
        super().__init__()
        self.encoder = SentenceEncoder(vocab, dim, hidden, latent)
        self.decoder = SentenceDecoder(vocab, dim, hidden, latent)

    def forward(self, tokens):
        mean, logvar = self.encoder(tokens)
        latent = mean + torch.randn_like(mean) * (0.5 * logvar).exp()
        logits = self.decoder(latent, tokens[:, :-1])
        words = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        kl = 0.5 * (mean.square() + logvar.exp() - 1 - logvar).sum(1).mean()
        return words, kl
