import torch


def citation_graph(n=60, n_classes=3, n_features=16, seed=0):
    """Papers that mostly cite papers of their own field."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(n_classes, (n,), generator=generator)
    same = labels.unsqueeze(0) == labels.unsqueeze(1)
    chance = torch.where(same, 0.12, 0.04)
    adj = torch.rand(n, n, generator=generator) < chance
    adj = adj | adj.T | torch.eye(n, dtype=torch.bool)
    centers = torch.randn(n_classes, n_features, generator=generator)
    features = centers[labels] + 2 * torch.randn(n, n_features, generator=generator)
    features = features / features.norm(dim=1, keepdim=True)
    order = torch.randperm(n, generator=generator)
    return features, labels, adj.nonzero().T.contiguous(), order[:30], order[30:]
