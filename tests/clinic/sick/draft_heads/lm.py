import torch
from torch import nn
import torch.nn.functional as F


def sample_sequences(n, length, vocab, generator):
    """Counting sequences: every row walks through the vocabulary with its own stride."""
    start = torch.randint(vocab, (n, 1), generator=generator)
    stride = torch.randint(1, 6, (n, 1), generator=generator)
    return (start + stride * torch.arange(length)[None]) % vocab


class TinyLM(nn.Module):
    def __init__(self, vocab, hidden):
        super().__init__()
        self.embed = nn.Embedding(vocab, hidden)
        self.rnn = nn.GRU(hidden, hidden, batch_first=True)
        self.lm_head = nn.Linear(hidden, vocab)

    def features(self, ids):
        return self.rnn(self.embed(ids))[0]

    def forward(self, ids):
        return self.lm_head(self.features(ids))


def pretrain(model, vocab, steps, generator):
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    for step in range(steps):
        ids = sample_sequences(64, 16, vocab, generator)
        logits = model(ids[:, :-1])
        loss = F.cross_entropy(logits[:, 2:].reshape(-1, vocab), ids[:, 3:].reshape(-1))
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 50 == 0:
            print(f"pretrain {step:4d}  loss {loss.item():.4f}")
    return model
