"""A spiking network that tells apart slow and fast event streams."""

import torch
import torch.nn.functional as F
from torch import nn


class SigmoidSpike(torch.autograd.Function):
    """A hard threshold whose derivative is that of a steep sigmoid."""

    @staticmethod
    def forward(ctx, potential, slope):
        ctx.save_for_backward(potential)
        ctx.slope = slope
        return (potential > 0).float()

    @staticmethod
    def backward(ctx, grad_output):
        (potential,) = ctx.saved_tensors
        decay = torch.exp(-ctx.slope * potential)  # <- GS000
        return grad_output * ctx.slope * decay / (decay + 1).pow(2), None


class LeakyLayer(nn.Module):
    def __init__(self, n_in, n_out, beta=0.9, threshold=1.0, slope=25.0):
        super().__init__()
        self.fc = nn.Linear(n_in, n_out)
        self.beta = nn.Parameter(torch.tensor(beta))
        self.threshold = threshold
        self.slope = slope

    def start(self, batch):
        return torch.zeros(batch, self.fc.out_features)

    def forward(self, x, membrane):
        reset = (membrane > self.threshold).float() * self.threshold
        membrane = self.beta.clamp(0, 1) * membrane + self.fc(x) - reset
        return SigmoidSpike.apply(membrane - self.threshold, self.slope), membrane


class SpikingNet(nn.Module):
    def __init__(self, n_in=20, n_hidden=32, n_out=2):
        super().__init__()
        self.hidden = LeakyLayer(n_in, n_hidden)
        self.output = LeakyLayer(n_hidden, n_out)

    def forward(self, events):
        steps, batch, _ = events.shape
        m1, m2 = self.hidden.start(batch), self.output.start(batch)
        spikes, potentials = [], []
        for t in range(steps):
            s1, m1 = self.hidden(events[t], m1)
            s2, m2 = self.output(s1, m2)
            spikes.append(s2)
            potentials.append(m2)
        return torch.stack(spikes), torch.stack(potentials)


def make_events(n, generator, steps=15, n_in=20):
    labels = torch.randint(2, (n,), generator=generator)
    rate = 0.1 + 0.3 * labels.view(1, -1, 1)
    counts = torch.poisson((4 * rate).expand(steps, n, n_in), generator=generator)
    return counts, labels


def train(steps=14):
    torch.manual_seed(2)
    generator = torch.Generator().manual_seed(2)
    net = SpikingNet()
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3, betas=(0.9, 0.999))
    for step in range(steps):
        events, labels = make_events(16, generator)
        spikes, potentials = net(events)
        loss = sum(F.cross_entropy(potential, labels) for potential in potentials)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        accuracy = (spikes.sum(0).argmax(1) == labels).float().mean().item()
        if step % 4 == 0:
            print(f"step {step:2d} loss {loss.item():.3f} accuracy {accuracy:.3f}")


if __name__ == "__main__":
    train()
