"""Fine-tune a sentence encoder with cross entropy and a supervised contrastive term."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


class SentenceEncoder(nn.Module):
    def __init__(self, vocab=64, dim=32, layers=1, classes=3):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim, padding_idx=0)
        self.pos = nn.Parameter(0.02 * torch.randn(16, dim))
        layer = nn.TransformerEncoderLayer(dim, 4, 2 * dim, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.classifier = nn.Linear(dim, classes)

    def forward(self, tokens):
        pad = tokens == 0
        h = self.encoder(self.embed(tokens) + self.pos[: tokens.shape[1]], src_key_padding_mask=pad)
        hidden = h[:, 0]
        return self.classifier(hidden), hidden


def cosine_table(vectors):
    unit = vectors / np.clip(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-8, None)
    return unit @ unit.T


def contrastive_loss(temperature, embeddings, labels):
    """Supervised contrastive loss over all pairs of a batch."""
    sims = np.exp(cosine_table(embeddings) / temperature)
    labels = labels.numpy()
    total = 0.0
    for i in range(len(labels)):
        others = np.arange(len(labels)) != i
        same = others & (labels == labels[i])
        if not same.any():
            continue
        total += -np.log(sims[i, same] / sims[i, others].sum()).mean()
    return float(total / len(labels))


def sentences(count, length=12):
    y = torch.randint(0, 3, (count,))
    words = torch.randint(1, 64, (count, length))
    topical = 1 + (y.unsqueeze(1) * 20 + torch.randint(0, 20, (count, length)))
    tokens = torch.where(torch.rand(count, length) < 0.4, topical, words)
    ends = torch.randint(8, length + 1, (count, 1))
    return tokens.masked_fill(torch.arange(length) >= ends, 0), y


def train(lam=0.9, temperature=0.3, lr=2e-3, epochs=2, batch=16):
    torch.manual_seed(33)
    tokens, y = sentences(160)
    model = SentenceEncoder()
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    for epoch in range(epochs):
        model.train()
        ce_total, scl_total = 0.0, 0.0
        for idx in torch.randperm(len(y)).split(batch):
            logits, hidden = model(tokens[idx])
            ce = F.cross_entropy(logits, y[idx])
            scl = contrastive_loss(temperature, hidden.detach().numpy(), y[idx])  # <- GS303
            loss = lam * scl + (1.0 - lam) * ce
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            ce_total += ce.item() * len(idx)
            scl_total += scl * len(idx)
        print(f"epoch {epoch} ce {ce_total / len(y):.4f} scl {scl_total / len(y):.4f}")


if __name__ == "__main__":
    train()
