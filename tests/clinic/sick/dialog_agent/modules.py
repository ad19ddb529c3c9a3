import torch
from torch import nn


class Encoder(nn.Module):
    """Dialog state encoder with a regression head onto image features."""

    def __init__(self, vocab=20, hidden=24, image_dim=8):
        super().__init__()
        self.embed = nn.Embedding(vocab, hidden)
        self.rnn = nn.GRU(hidden, hidden, batch_first=True)
        self.regress = nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU())
        self.feature = nn.Linear(hidden, image_dim)

    def forward(self, tokens, state=None):
        _, state = self.rnn(self.embed(tokens), state)
        return state

    def predict_image(self, state):
        return self.feature(self.regress(state[-1]))


class Decoder(nn.Module):
    """Generates an utterance by sampling and keeps the log probabilities."""

    def __init__(self, vocab=20, hidden=24, length=5, start=0, stop=1):
        super().__init__()
        self.embed = nn.Embedding(vocab, hidden)
        self.cell = nn.GRUCell(hidden, hidden)
        self.out = nn.Linear(hidden, vocab)
        self.length, self.start, self.stop = length, start, stop
        self.log_probs, self.mask = [], []

    def generate(self, state):
        h = state[-1]
        token = torch.full((len(h),), self.start)
        alive = torch.ones(len(h))
        self.log_probs, self.mask, words = [], [], []
        for _ in range(self.length):
            h = self.cell(self.embed(token), h)
            dist = torch.distributions.Categorical(logits=self.out(h))
            token = dist.sample()
            self.log_probs.append(dist.log_prob(token))
            self.mask.append(alive)
            alive = alive * (token != self.stop).float()
            words.append(token)
        return torch.stack(words, dim=1)

    def reinforce(self, reward):
        loss = 0.0
        for log_prob, mask in zip(self.log_probs, self.mask, strict=True):
            loss = loss - (log_prob * reward * mask).mean()  # <- GS533
        return loss
