"""Classify spike trains with a recurrent layer of leaky integrate-and-fire neurons."""

import torch
import torch.nn.functional as F
from torch import nn


class SpikeFunction(torch.autograd.Function):
    """A step forwards, a fast sigmoid's slope backwards."""

    @staticmethod
    def forward(ctx, membrane, threshold, slope, hard_reset):
        distance = membrane - threshold
        ctx.save_for_backward(distance)
        ctx.slope = slope
        ctx.hard_reset = hard_reset
        return (distance > 0).to(membrane.dtype)

    @staticmethod
    def backward(ctx, grad_output):
        (distance,) = ctx.saved_tensors
        surrogate = grad_output / (1.0 + ctx.slope * distance.abs()) ** 2
        grad_threshold = None
        if ctx.needs_input_grad[1]:
            grad_threshold = -surrogate.sum(dim=0)
        return surrogate, grad_threshold, None, None


class LIFLayer(nn.Module):
    def __init__(self, n_in, n_out, slope=5.0):
        super().__init__()
        self.inputs = nn.Linear(n_in, n_out, bias=False)
        self.recurrent = nn.Linear(n_out, n_out, bias=False)
        self.threshold = nn.Parameter(torch.ones(n_out))
        self.decay_logit = nn.Parameter(torch.full((n_out,), 2.0))
        self.slope = slope
        nn.init.normal_(self.inputs.weight, std=0.5)
        nn.init.normal_(self.recurrent.weight, std=0.05)

    def forward(self, train):
        steps, batch, _ = train.shape
        membrane = train.new_zeros(batch, self.threshold.numel())
        spikes = torch.zeros_like(membrane)
        decay = torch.sigmoid(self.decay_logit)
        out = []
        for t in range(steps):
            current = self.inputs(train[t]) + self.recurrent(spikes)
            membrane = decay * membrane + current - spikes.detach() * self.threshold.detach()
            spikes = SpikeFunction.apply(membrane, self.threshold, self.slope, False)
            out.append(spikes)
        return torch.stack(out)


class SpikingClassifier(nn.Module):
    def __init__(self, n_in=20, hidden=32, classes=3):
        super().__init__()
        self.hidden = LIFLayer(n_in, hidden)
        self.readout = nn.Linear(hidden, classes)

    def forward(self, train):
        spikes = self.hidden(train)
        return self.readout(spikes.mean(dim=0)), spikes


def poisson_trains(rates, labels, steps, generator):
    probs = rates[labels].expand(steps, -1, -1)
    return torch.bernoulli(probs, generator=generator)


def main():
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(1)
    rates = torch.rand(3, 20, generator=generator) * 0.5
    model = SpikingClassifier()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    target_rate = 0.15

    for step in range(30):
        labels = torch.randint(0, 3, (48,), generator=generator)
        trains = poisson_trains(rates, labels, 15, generator)
        logits, spikes = model(trains)
        activity = (spikes.mean(dim=(0, 1)) - target_rate).pow(2).mean()
        loss = F.cross_entropy(logits, labels) + 0.5 * activity

        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

        if step % 10 == 0 or step == 29:
            with torch.no_grad():
                silent = (spikes.sum(dim=(0, 1)) == 0).float().mean()
                accuracy = (logits.argmax(dim=1) == labels).float().mean()
            print(f"step {step:2d} loss {loss.item():.3f} acc {accuracy:.2f} silent {silent:.2f}")

    model.eval()
    with torch.no_grad():
        labels = torch.arange(3).repeat(30)
        logits, _ = model(poisson_trains(rates, labels, 15, generator))
        print(f"test accuracy {(logits.argmax(dim=1) == labels).float().mean():.2f}")


if __name__ == "__main__":
    main()
