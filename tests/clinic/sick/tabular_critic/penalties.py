import torch


def lipschitz_penalty(critic, real, fake, weight=10.0):
    """WGAN-GP penalty, computed on packs of rows."""
    packs = real.shape[0] // critic.pac
    mix = torch.rand(packs, 1, 1).expand(packs, critic.pac, real.shape[1]).reshape_as(real)
    points = (mix * real + (1.0 - mix) * fake).requires_grad_(True)
    scores = critic(points)
    slopes = torch.autograd.grad(  # <- GS303
        outputs=scores,
        inputs=points,
        grad_outputs=torch.ones_like(scores),
        retain_graph=True,
    )[0]
    norms = slopes.reshape(packs, -1).norm(2, dim=1)
    return weight * (norms - 1.0).square().mean()
