import torch


class UserTasks:
    """Few ratings of each user to adapt on (support), a few more to be judged by (query)."""

    def __init__(self, items=40, features=8, support=8, query=8, seed=0):
        self.generator = torch.Generator().manual_seed(seed)
        self.items = torch.randn(items, features, generator=self.generator)
        self.support, self.query = support, query

    def user(self):
        taste = torch.randn(self.items.shape[1], generator=self.generator)
        seen = torch.randperm(len(self.items), generator=self.generator)
        seen = seen[: self.support + self.query]
        x = self.items[seen]
        rating = (x @ taste / 2).tanh() * 2 + 3
        return (x[: self.support], rating[: self.support]), (
            x[self.support :],
            rating[self.support :],
        )

    def batch(self, users):
        return [self.user() for _ in range(users)]
