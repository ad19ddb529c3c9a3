import torch


def normalise(adj):
    adj = adj + torch.eye(adj.shape[-1])
    degree = adj.sum(-1).clamp(min=1.0).rsqrt()
    return degree.unsqueeze(-1) * adj * degree.unsqueeze(-2)


def make_graphs(count, nodes=14, features=6):
    """Class 1 graphs have two communities, class 0 graphs do not."""
    labels = torch.randint(0, 2, (count,))
    half = torch.arange(nodes) < nodes // 2
    same = half.unsqueeze(0) == half.unsqueeze(1)
    prob = torch.where(same, 0.6, 0.1)
    prob = torch.where(labels.view(-1, 1, 1).bool(), prob, torch.full_like(prob, 0.35))
    upper = torch.triu((torch.rand(count, nodes, nodes) < prob).float(), 1)
    adj = upper + upper.transpose(1, 2)
    x = torch.randn(count, nodes, features)
    x[:, :, 0] = adj.sum(-1) / nodes
    x[:, :, 1] += labels.view(-1, 1) * half.float()
    sizes = torch.randint(nodes - 3, nodes + 1, (count, 1))
    mask = (torch.arange(nodes) < sizes).float()
    return normalise(adj), x, mask, labels
