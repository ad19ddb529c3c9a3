"""Speech enhancement trained on an intelligibility measure instead of a squared error."""

import torch
from torch import nn

EPS = 1e-8
BANDS, SEGMENT = 6, 8


class MaskNet(nn.Module):
    def __init__(self, bins, hidden=24):
        super().__init__()
        self.rnn = nn.GRU(bins, hidden, batch_first=True)
        self.mask = nn.Linear(hidden, bins)

    def forward(self, magnitude):
        features, _ = self.rnn(torch.log1p(magnitude))
        return torch.sigmoid(self.mask(features)) * magnitude


class IntelligibilityLoss(nn.Module):
    def __init__(self, bins):
        super().__init__()
        edges = torch.linspace(0, bins, BANDS + 1).long()
        bank = torch.zeros(BANDS, bins)
        for band in range(BANDS):
            bank[band, edges[band] : edges[band + 1]] = 1.0
        self.register_buffer("bank", bank)

    def band_energies(self, magnitude):
        return magnitude.pow(2) @ self.bank.t()

    @staticmethod
    def segments(envelope):
        return envelope.unfold(1, SEGMENT, SEGMENT // 2)

    def forward(self, estimate, clean):
        x = self.segments(self.band_energies(clean))
        y = self.segments(self.band_energies(estimate))
        norm_x = x.pow(2).sum(-1, keepdim=True).sqrt()
        norm_y = y.pow(2).sum(-1, keepdim=True).sqrt()  # <- GS102
        y = torch.minimum(y * norm_x / (norm_y + EPS), x * (1 + 10 ** (15 / 20)))
        x = x - x.mean(-1, keepdim=True)
        y = y - y.mean(-1, keepdim=True)
        x = x / (x.pow(2).sum(-1, keepdim=True) + EPS).sqrt()
        y = y / (y.pow(2).sum(-1, keepdim=True) + EPS).sqrt()
        return -(x * y).sum(-1).mean()


def make_batch(generator, batch=4, frames=48, bins=18):
    envelope = torch.rand(batch, frames, 1, generator=generator)
    clean = envelope * torch.rand(batch, 1, bins, generator=generator)
    noise = 0.3 * torch.rand(batch, frames, bins, generator=generator)
    lengths = torch.randint(20, frames, (batch,), generator=generator)
    lengths[0] = frames
    valid = (torch.arange(frames)[None] < lengths[:, None]).unsqueeze(-1).float()
    return clean * valid, (clean + noise) * valid


def main():
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(2)
    net = MaskNet(18)
    criterion = IntelligibilityLoss(18)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for step in range(8):
        clean, noisy = make_batch(generator)
        loss = criterion(net(noisy), clean)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 5.0)
        optimizer.step()
        print(f"step {step} intelligibility {-loss.item():.4f}")


if __name__ == "__main__":
    main()
