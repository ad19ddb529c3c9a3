import torch
import torch.nn as nn


def embedding(weight, ids, padding_idx=None):
    """Table lookup written with index_select so that it lowers to a plain gather."""
    flat = weight.index_select(0, ids.reshape(-1))  # <- GS558
    return flat.view(*ids.shape, weight.shape[1])  # <~ GS558


class Embedding(nn.Module):
    def __init__(self, num_embeddings, embedding_dim, padding_idx=None):
        super().__init__()
        self.padding_idx = padding_idx
        self.weight = nn.Parameter(torch.randn(num_embeddings, embedding_dim) * 0.1)
        if padding_idx is not None:
            with torch.no_grad():
                self.weight[padding_idx].zero_()

    def forward(self, ids):
        return embedding(self.weight, ids, self.padding_idx)


class TopicClassifier(nn.Module):
    """Summed token vectors, a hidden layer and a softmax over topics."""

    def __init__(self, vocab_size, dim, n_topics, padding_idx):
        super().__init__()
        self.embed = Embedding(vocab_size, dim, padding_idx=padding_idx)
        self.hidden = nn.Linear(dim, dim)
        self.out = nn.Linear(dim, n_topics)

    def forward(self, ids):
        pooled = self.embed(ids).sum(dim=1)
        return self.out(torch.tanh(self.hidden(pooled)))
