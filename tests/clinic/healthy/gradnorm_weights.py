"""GradNorm: loss weights that equalise the tasks' gradient norms; slower early layers by hooks."""

import torch
import torch.nn.functional as F
from torch import nn


class TwoTaskNet(nn.Module):
    def __init__(self, n_in=8, hidden=32):
        super().__init__()
        self.layers = nn.ModuleList(
            [nn.Linear(n_in, hidden), nn.Linear(hidden, hidden), nn.Linear(hidden, hidden)]
        )
        self.regression = nn.Linear(hidden, 2)
        self.classification = nn.Linear(hidden, 3)

    def forward(self, x):
        for layer in self.layers:
            x = F.silu(layer(x))
        return self.regression(x), self.classification(x)

    @property
    def last_shared(self):
        return self.layers[-1].weight


def attach_layer_scales(model, decay=0.7):
    """Layer-wise learning rates: the gradient of layer i shrinks by decay ** (depth - i)."""
    handles = []
    depth = len(model.layers)
    for i, layer in enumerate(model.layers):
        scale = decay ** (depth - 1 - i)
        for p in layer.parameters():
            handles.append(p.register_hook(lambda grad, s=scale: grad * s))
    return handles


class GradNormBalancer:
    def __init__(self, tasks, alpha=0.5, lr=0.01):
        self.weights = nn.Parameter(torch.ones(tasks))
        self.optimizer = torch.optim.Adam([self.weights], lr=lr)
        self.initial, self.alpha = None, alpha

    def combine(self, losses):
        stacked = torch.stack(losses)
        if self.initial is None:
            self.initial = stacked.detach().clone()
        return (self.weights * stacked).sum()

    def gradient_for_weights(self, losses, shared):
        norms = []
        for weight, loss in zip(self.weights, losses, strict=True):
            (grad,) = torch.autograd.grad(
                weight * loss, shared, retain_graph=True, create_graph=True
            )
            norms.append(grad.norm())
        norms = torch.stack(norms)
        with torch.no_grad():
            ratio = torch.stack(losses) / self.initial
            target = norms.mean() * (ratio / ratio.mean()) ** self.alpha
        distance = (norms - target).abs().sum()
        return torch.autograd.grad(distance, self.weights, retain_graph=True)[0]

    def step(self, gradient):
        self.weights.grad = gradient
        self.optimizer.step()
        with torch.no_grad():
            self.weights.clamp_(min=1e-3)
            self.weights.mul_(len(self.weights) / self.weights.sum())


def make_data(n=256):
    x = torch.randn(n, 8)
    target = 2.5 * torch.stack([torch.sin(x[:, 0]), x[:, 1] - x[:, 2]], dim=1)
    label = (x[:, 3] > -0.4).long() + (x[:, 3] > 0.4).long()
    return x, target, label


def main():
    torch.manual_seed(0)
    x, target, label = make_data()
    model, balancer = TwoTaskNet(), GradNormBalancer(2)
    handles = attach_layer_scales(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for epoch in range(5):
        sums = torch.zeros(2)
        for ids in torch.randperm(len(x)).split(32):
            out, logits = model(x[ids])
            losses = [F.mse_loss(out, target[ids]), F.cross_entropy(logits, label[ids])]
            total = balancer.combine(losses)
            weight_gradient = balancer.gradient_for_weights(losses, model.last_shared)
            optimizer.zero_grad()
            total.backward()
            balancer.step(weight_gradient)
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            sums += torch.stack(losses).detach()
        weights = [round(w, 2) for w in balancer.weights.tolist()]
        regression, classification = (sums / 8).tolist()
        print(f"epoch {epoch} mse {regression:.2f} ce {classification:.3f} weights {weights}")
    for handle in handles:
        handle.remove()


if __name__ == "__main__":
    main()
