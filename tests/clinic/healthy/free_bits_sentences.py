"""A sentence autoencoder whose divergence counts only above a floor, with word dropout."""

import torch
import torch.nn.functional as F
from torch import nn

WORDS, WIDTH, LATENT, LENGTH = 24, 16, 6, 8
FREE_BITS = 0.25


class SentenceVae(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(WORDS, WIDTH)
        self.encoder = nn.GRU(WIDTH, WIDTH, batch_first=True)
        self.mean = nn.Linear(WIDTH, LATENT)
        self.log_var = nn.Linear(WIDTH, LATENT)
        self.start = nn.Linear(LATENT, WIDTH)
        self.decoder = nn.GRU(WIDTH, WIDTH, batch_first=True)
        self.out = nn.Linear(WIDTH, WORDS)

    def forward(self, tokens, drop=0.5):
        _, state = self.encoder(self.embed(tokens))
        mean, log_var = self.mean(state[0]), self.log_var(state[0])
        z = mean + torch.randn_like(mean) * (0.5 * log_var).exp()
        previous = tokens[:, :-1]
        blank = torch.rand(previous.shape) < drop
        previous = previous.masked_fill(blank, 0)
        hidden, _ = self.decoder(self.embed(previous), torch.tanh(self.start(z)).unsqueeze(0))
        return self.out(hidden), mean, log_var


def divergence(mean, log_var):
    per_unit = -0.5 * (1 + log_var - mean.pow(2) - log_var.exp())
    return per_unit.mean(0).clamp(min=FREE_BITS).sum(), per_unit.sum(1).mean().item()


def sentences(count, generator):
    start = torch.randint(1, WORDS, (count, 1), generator=generator)
    stride = torch.randint(1, 4, (count, 1), generator=generator)
    return (start + stride * torch.arange(LENGTH)) % (WORDS - 1) + 1


def main():
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(3)
    model = SentenceVae()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step in range(24):
        tokens = sentences(32, generator)
        logits, mean, log_var = model(tokens)
        nll = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        penalty, kl = divergence(mean, log_var)
        loss = nll * (LENGTH - 1) + penalty
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        if step % 6 == 5:
            print(f"step {step + 1} nll {nll.item():.4f} kl {kl:.4f}")


if __name__ == "__main__":
    main()
