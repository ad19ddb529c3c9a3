import torch


def queue_loss(q, k, queue, temperature: float):
    """The positive key against all the keys of the queue."""
    n, c = q.shape
    pos = torch.exp(torch.bmm(q.view(n, 1, c), k.view(n, c, 1)).view(n, 1) / temperature)
    neg = torch.exp(q @ queue.t() / temperature).sum(dim=1)
    return -torch.log(pos / (pos + neg)).mean()  # <- GS503


def retrieval_accuracy(q, k) -> float:
    return ((q @ k.t()).argmax(dim=1) == torch.arange(len(q))).float().mean().item()
