import torch
import torch.nn.functional as F
from torch import nn


def euclidean_matrix(a, b):
    """Pairwise distances between two sets of embeddings."""
    diff = a.unsqueeze(1) - b.unsqueeze(0)
    return torch.sqrt(diff.square().sum(-1))  # <- GS102


class BatchMarginLoss(nn.Module):
    """Pull embeddings of the same signer together, push the others away."""

    def __init__(self, margin=1.0):
        super().__init__()
        self.margin = margin

    def forward(self, anchors, others, anchor_ids, other_ids):
        dist = euclidean_matrix(anchors, others)
        same = anchor_ids.unsqueeze(1) == other_ids.unsqueeze(0)
        pull = dist.square() * same
        push = F.relu(self.margin - dist).square() * ~same
        return (pull.sum() / same.sum().clamp(min=1)) + (push.sum() / (~same).sum().clamp(min=1))
