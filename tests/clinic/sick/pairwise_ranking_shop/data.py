import torch


class Interactions:
    """Purchases of a small shop; negatives are drawn among the items that were never bought."""

    def __init__(self, n_users=40, n_items=60, per_user=6, seed=0):
        self.generator = torch.Generator().manual_seed(seed)
        self.n_users, self.n_items = n_users, n_items
        taste = torch.randn(n_users, 4, generator=self.generator)
        kind = torch.randn(n_items, 4, generator=self.generator)
        bought = (taste @ kind.T).topk(per_user, dim=1).indices
        self.bought = torch.zeros(n_users, n_items, dtype=torch.bool).scatter(1, bought, True)
        self.pairs = self.bought.nonzero()

    def adjacency(self):
        rated = self.bought.float()
        users = rated.sum(1, keepdim=True).clamp(min=1).rsqrt()
        items = rated.sum(0, keepdim=True).clamp(min=1).rsqrt()
        return users * rated * items

    def batches(self, size):
        order = torch.randperm(len(self.pairs), generator=self.generator)
        for chunk in self.pairs[order].split(size):
            users, positives = chunk.unbind(1)
            weights = (~self.bought[users]).float()
            negatives = torch.multinomial(weights, 1, generator=self.generator).squeeze(1)
            yield users, positives, negatives
