"""One expert of several for each sample; the scores of all get their gradient by an estimator."""

import torch
from torch import nn


class ByChoice(torch.autograd.Function):
    """The weight of the chosen expert, scaled at random: the midpoint rule for a choice that is
    sampled.  Its gradient goes past the weight, to the scores of all experts."""

    @staticmethod
    def forward(ctx, scores, weight, chosen, shares, scale):
        ctx.save_for_backward(weight, chosen, shares)
        return weight * scale

    @staticmethod
    def backward(ctx, grad):
        weight, chosen, shares = ctx.saved_tensors
        grad = grad * weight
        to_scores = (shares * -grad).scatter_add(-1, chosen, grad)
        return to_scores, None, None, None, None


class Mixture(nn.Module):
    def __init__(self, width=6, experts=4):
        super().__init__()
        self.router = nn.Linear(width, experts, bias=False)
        self.first = nn.Parameter(torch.randn(experts, width, 16) / width**0.5)
        self.second = nn.Parameter(torch.randn(experts, 16, width) / 4)

    def forward(self, x):
        scores = self.router(x)
        shares = scores.softmax(-1)
        chosen = shares.multinomial(1)
        weight = shares.gather(-1, chosen)
        at_top = chosen == shares.argmax(-1, keepdim=True)
        scale = torch.where(at_top & (torch.rand_like(weight) > 0.5), 4 / 3, 1.0)
        weight = ByChoice.apply(scores, weight, chosen, shares, scale)
        inner = torch.relu(torch.einsum("nw,nwh->nh", x, self.first[chosen[:, 0]]))
        return weight * torch.einsum("nh,nhw->nw", inner, self.second[chosen[:, 0]])


def main():
    torch.manual_seed(0)
    model = Mixture()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(10):
        x = torch.randn(64, 6)
        loss = nn.functional.mse_loss(model(x), x.roll(1, 1).abs())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
