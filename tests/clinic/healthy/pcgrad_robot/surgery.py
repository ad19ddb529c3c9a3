import torch


def flat_grads(loss, params, retain_graph):
    grads = torch.autograd.grad(loss, params, retain_graph=retain_graph, allow_unused=True)
    return torch.cat(
        [(torch.zeros_like(p) if g is None else g).reshape(-1) for p, g in zip(params, grads)]
    )


def project_conflicting(grads, gen):
    """Removes from every task gradient the part that points against another task."""
    out = []
    for i, g in enumerate(grads):
        g = g.clone()
        for j in torch.randperm(len(grads), generator=gen).tolist():
            if j == i:
                continue
            dot = g @ grads[j]
            if dot < 0:
                g -= dot / (grads[j] @ grads[j] + 1e-12) * grads[j]
        out.append(g)
    return torch.stack(out).sum(dim=0)


def write_grads(params, flat):
    offset = 0
    for p in params:
        n = p.numel()
        p.grad = flat[offset : offset + n].view_as(p).clone()
        offset += n
