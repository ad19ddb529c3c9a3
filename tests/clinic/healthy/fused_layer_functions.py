"""Hand-written autograd functions for a fused layer, trained under a gradient penalty."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.autograd.function import once_differentiable


class FusedLinearSoftplus(torch.autograd.Function):
    """softplus(x W' + b) in one piece; also tells how many units are active in each row."""

    @staticmethod
    def forward(ctx, x, weight, bias, beta, mode):
        pre = F.linear(x, weight, bias)
        active = (pre > 0).sum(dim=1)
        ctx.save_for_backward(x, weight, bias)
        ctx.beta, ctx.mode = beta, mode
        ctx.mark_non_differentiable(active)
        return F.softplus(pre, beta=beta), active

    @staticmethod
    def backward(ctx, grad_out, _grad_active):
        x, weight, bias = ctx.saved_tensors
        local = grad_out * torch.sigmoid(ctx.beta * F.linear(x, weight, bias))
        grad_x = grad_weight = grad_bias = None
        if ctx.needs_input_grad[0]:
            grad_x = local @ weight
        if ctx.needs_input_grad[1]:
            grad_weight = local.t() @ x
        if bias is not None and ctx.needs_input_grad[2]:
            grad_bias = local.sum(dim=0)
        return grad_x, grad_weight, grad_bias, None, None


class GatherMean(torch.autograd.Function):
    """Mean of table rows per bag; indices and lengths carry no gradient."""

    @staticmethod
    def forward(table, index, lengths):
        mask = (torch.arange(index.shape[1]) < lengths.unsqueeze(1)).to(table.dtype)
        weights = mask / lengths.clamp_min(1).unsqueeze(1).to(table.dtype)
        return (table[index] * weights.unsqueeze(-1)).sum(dim=1), weights

    @staticmethod
    def setup_context(ctx, inputs, output):
        table, index, _ = inputs
        _, weights = output
        ctx.mark_non_differentiable(weights)
        ctx.save_for_backward(index, weights)
        ctx.rows = table.shape[0]

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_mean, _grad_weights):
        index, weights = ctx.saved_tensors
        spread = grad_mean.unsqueeze(1) * weights.unsqueeze(-1)
        grad_table = grad_mean.new_zeros(ctx.rows, grad_mean.shape[1])
        grad_table.index_add_(0, index.flatten(), spread.flatten(0, 1))
        return grad_table, None, None


class FusedLayer(nn.Module):
    def __init__(self, n_in, n_out, bias=True, beta=2.0):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(n_out, n_in) / n_in**0.5)
        self.bias = nn.Parameter(torch.zeros(n_out)) if bias else None
        self.beta = beta

    def forward(self, x):
        return FusedLinearSoftplus.apply(x, self.weight, self.bias, self.beta, "exact")


class BagScorer(nn.Module):
    def __init__(self, words=30, width=12, hidden=24):
        super().__init__()
        self.table = nn.Parameter(0.3 * torch.randn(words, width))
        self.first = FusedLayer(width, hidden, bias=False)
        self.second = FusedLayer(hidden, hidden)
        self.score = nn.Linear(hidden, 1)

    def encode(self, index, lengths):
        return GatherMean.apply(self.table, index, lengths)[0]

    def forward(self, encoded):
        h, active_first = self.first(encoded)
        h, active_second = self.second(h)
        active = torch.stack([active_first, active_second]).float().mean()
        return self.score(h).squeeze(1), active


def gradient_penalty(model, encoded):
    point = encoded.detach().requires_grad_(True)
    score, _ = model(point)
    (grad,) = torch.autograd.grad(score.sum(), point, create_graph=True)
    return (grad.norm(dim=1) - 1.0).relu().pow(2).mean()


def main():
    torch.manual_seed(0)
    value = torch.randn(30)
    model = BagScorer()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for step in range(36):
        index = torch.randint(0, 30, (64, 6))
        lengths = torch.randint(1, 7, (64,))
        mask = torch.arange(6) < lengths.unsqueeze(1)
        target = (value[index] * mask).sum(dim=1) / lengths
        encoded = model.encode(index, lengths)
        score, active = model(encoded)
        penalty = gradient_penalty(model, encoded)
        loss = F.mse_loss(score, target) + 0.1 * penalty
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 7 == 0:
            print(
                f"step {step} loss {loss.item():.3f} penalty {penalty.item():.3f} "
                f"active {active.item():.1f}"
            )


if __name__ == "__main__":
    main()
