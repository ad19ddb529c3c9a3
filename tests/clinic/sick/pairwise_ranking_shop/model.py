import torch
from torch import nn


class SpectralRecommender(nn.Module):
    """Embeddings smoothed over the strongest directions of the interaction graph."""

    def __init__(self, adjacency, dim=16, rank=12, reg=1e-3):
        super().__init__()
        self.reg = reg
        users, strength, items = torch.linalg.svd(adjacency, full_matrices=False)
        weight = torch.diag(strength[:rank].pow(2))
        self.register_buffer("smooth_users", users[:, :rank] @ weight @ users[:, :rank].T)
        self.register_buffer("smooth_items", items[:rank].T @ weight @ items[:rank])
        self.user_embed = nn.Embedding(adjacency.size(0), dim)
        self.item_embed = nn.Embedding(adjacency.size(1), dim)
        nn.init.xavier_normal_(self.user_embed.weight)
        nn.init.xavier_normal_(self.item_embed.weight)

    def embeddings(self):
        return (
            self.smooth_users @ self.user_embed.weight,
            self.smooth_items @ self.item_embed.weight,
        )

    def forward(self, users, positives, negatives):
        all_users, all_items = self.embeddings()
        user, positive, negative = all_users[users], all_items[positives], all_items[negatives]
        out = (user * positive).sum(1).sigmoid() - (user * negative).sum(1).sigmoid()  # <- GS101
        penalty = user.pow(2).sum() + positive.pow(2).sum() + negative.pow(2).sum()
        return -torch.log(out).sum() / len(users) + self.reg * penalty / len(users)  # <~ GS101

    @torch.no_grad()
    def scores(self):
        users, items = self.embeddings()
        return users @ items.T
