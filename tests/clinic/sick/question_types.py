"""Sorts short questions into six kinds with a recurrent encoder over words."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

VOCAB, KINDS, PAD = 120, 6, 0


def make_questions(n: int):
    texts, kinds = [], []
    for _ in range(n):
        kind = int(torch.randint(0, KINDS, (1,)))
        length = int(torch.randint(3, 15, (1,)))
        words = torch.randint(1, VOCAB, (length,))
        words[torch.randint(0, length, (2,))] = 1 + kind
        texts.append(words)
        kinds.append(kind)
    return texts, torch.tensor(kinds)


def collate(texts):
    lengths = torch.tensor([len(t) for t in texts])
    return pad_sequence(texts, batch_first=True, padding_value=PAD), lengths


class QuestionEncoder(nn.Module):
    def __init__(self, dim: int = 24, hidden: int = 32):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim, padding_idx=PAD)
        self.rnn = nn.LSTM(dim, hidden, batch_first=True)

    def forward(self, tokens, lengths):
        packed = pack_padded_sequence(
            self.embed(tokens), lengths, batch_first=True, enforce_sorted=False
        )
        states, _ = pad_packed_sequence(self.rnn(packed)[0], batch_first=True)
        return states[:, -1]  # <- GS535


class QuestionClassifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = QuestionEncoder()
        self.norm = nn.LayerNorm(32)
        self.head = nn.Linear(32, KINDS)

    def forward(self, tokens, lengths):
        return self.head(self.norm(self.encoder(tokens, lengths)))


def evaluate(model, texts, kinds) -> float:
    model.eval()
    with torch.no_grad():
        hits = (model(*collate(texts)).argmax(1) == kinds).float().mean().item()
    model.train()
    return hits


def main():
    torch.manual_seed(3)
    texts, kinds = make_questions(320)
    train, val = (texts[:256], kinds[:256]), (texts[256:], kinds[256:])
    model = QuestionClassifier()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(3):
        total = 0.0
        for start in range(0, 256, 32):
            tokens, lengths = collate(train[0][start : start + 32])
            loss = F.cross_entropy(model(tokens, lengths), train[1][start : start + 32])
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: loss {total / 8:.4f}  val accuracy {evaluate(model, *val):.3f}")


if __name__ == "__main__":
    main()
