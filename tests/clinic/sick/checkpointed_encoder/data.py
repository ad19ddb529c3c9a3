import torch


class DialogueVectors:
    """Random contexts; the response is a fixed nonlinear map of the context summary plus noise."""

    def __init__(self, n, dim=32, turns=4, seed=0):
        g = torch.Generator().manual_seed(seed)
        world = torch.Generator().manual_seed(1234)
        w1 = torch.randn(dim, dim, generator=world) / dim**0.5
        w2 = torch.randn(dim, dim, generator=world) / dim**0.5
        self.context = torch.randn(n, turns, dim, generator=g)
        summary = torch.tanh(self.context * 1.5 @ w1).mean(1)
        clean = torch.sin(3.0 * summary @ w2)
        self.response = clean.unsqueeze(1) + 0.3 * torch.randn(n, 2, dim, generator=g)

    def batches(self, batch_size, generator):
        order = torch.randperm(len(self.context), generator=generator)
        for i in range(0, len(order) - batch_size + 1, batch_size):
            idx = order[i : i + batch_size]
            yield self.context[idx], self.response[idx]
