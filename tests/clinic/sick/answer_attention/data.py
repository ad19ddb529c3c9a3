import torch


class Questions:
    """Questions of which one word names the entity asked for."""

    def __init__(self, vocabulary=50, entities=12, dim=6, length=7, seed=0):
        self.generator = torch.Generator().manual_seed(seed)
        self.vocabulary, self.entities, self.length = vocabulary, entities, length
        self.table = torch.randn(entities, dim, generator=self.generator)

    def batch(self, size):
        question = torch.randint(
            1 + self.entities, self.vocabulary, (self.length, size), generator=self.generator
        )
        entity = torch.randint(0, self.entities, (size,), generator=self.generator)
        place = torch.randint(0, self.length, (size,), generator=self.generator)
        question[place, torch.arange(size)] = entity + 1
        return question, self.table[entity], entity

    def nearest(self, prediction):
        return torch.cdist(prediction, self.table).argmin(1)
