import torch
import torch.nn as nn
import torch.nn.functional as F


class DualEncoder(nn.Module):
    """One tower for questions and one for passages, scored by a dot product."""

    def __init__(self, vocab: int, dim: int):
        super().__init__()
        self.question = nn.EmbeddingBag(vocab, dim)
        self.passage = nn.EmbeddingBag(vocab, dim)
        self.project = nn.Linear(dim, dim)

    def forward(self, questions, passages):
        q = self.project(self.question(questions))
        p = self.project(self.passage(passages))
        return q @ p.t()


def in_batch_loss(scores):
    return F.cross_entropy(scores, torch.arange(len(scores)))
