import torch
from torch import nn


class JointModel(nn.Module):
    def __init__(self, n_words, n_intents, n_slots, dim=20, hidden=24):
        super().__init__()
        self.embed = nn.Embedding(n_words, dim, padding_idx=0)
        self.encoder = nn.GRU(dim, hidden, batch_first=True, bidirectional=True)
        self.intent_head = nn.Linear(2 * hidden, n_intents)
        self.slot_head = nn.Linear(2 * hidden, n_slots)

    def forward(self, ids):
        h, _ = self.encoder(self.embed(ids))
        mask = (ids != 0).unsqueeze(-1)
        pooled = h.masked_fill(~mask, -1e4).max(dim=1).values
        return {"intent": self.intent_head(pooled), "slots": self.slot_head(h)}


def make_utterances(n, generator, n_words=40, n_intents=4, n_slots=5, length=9):
    ids = torch.randint(1, n_words, (n, length), generator=generator)
    sizes = torch.randint(4, length + 1, (n, 1), generator=generator)
    mask = torch.arange(length) < sizes
    slots = torch.where(mask, ids % n_slots, -100)
    return {"ids": ids * mask, "intent": ids[:, 0] % n_intents, "slots": slots}
