import math

import torch
import torch.nn as nn
import torch.nn.functional as F

SETTINGS = {
    "n_fft": 32,
    "hop": 16,
    "w_mag": 1.0,
    "w_phase": 0.1,
    "lr": 2e-3,
    "steps": 8,
    "batch": 4,
    "samples": 512,
}


class STFTLoss(nn.Module):
    def __init__(self, n_fft, hop, w_mag, w_phase):
        super().__init__()
        self.n_fft, self.hop = n_fft, hop
        self.w_mag, self.w_phase = w_mag, w_phase
        self.register_buffer("window", torch.hann_window(n_fft))

    def stft(self, x):
        spec = torch.stft(
            x, self.n_fft, self.hop, window=self.window, center=False, return_complex=True
        )
        mag = torch.sqrt(torch.clamp(spec.real**2 + spec.imag**2, min=1e-4))
        phase = torch.angle(spec)  # <- GS102
        return mag, phase

    def forward(self, estimate, target):
        mag_e, phase_e = self.stft(estimate)
        mag_t, phase_t = self.stft(target)
        convergence = torch.norm(mag_t - mag_e) / torch.norm(mag_t)
        log_mag = F.l1_loss(mag_e.log(), mag_t.log())
        phase = F.mse_loss(phase_e, phase_t)
        return self.w_mag * (convergence + log_mag) + self.w_phase * phase


class Dereverb(nn.Module):
    """A masking network on overlapping blocks of samples."""

    def __init__(self, width=12):
        super().__init__()
        self.encode = nn.Conv1d(1, width, 9, padding=4, bias=False)
        self.mask = nn.Sequential(
            nn.Conv1d(width, width, 5, padding=2), nn.PReLU(), nn.Conv1d(width, width, 1)
        )
        self.decode = nn.Conv1d(width, 1, 9, padding=4, bias=False)

    def forward(self, wave):
        features = self.encode(wave[:, None])
        return self.decode(features * torch.sigmoid(self.mask(features)))[:, 0]


def decaying_notes(batch, samples):
    t = torch.arange(samples).float()
    freq = 0.05 + 0.3 * torch.rand(batch, 1)
    decay = 0.2 + 0.05 * torch.rand(batch, 1)
    dry = torch.sin(2 * math.pi * freq * t) * torch.exp(-decay * t)
    wet = F.conv1d(F.pad(dry[:, None], (7, 0)), torch.full((1, 1, 8), 0.2))[:, 0]
    return wet, dry


def main():
    torch.manual_seed(44)
    model = Dereverb()
    criterion = STFTLoss(*(SETTINGS[k] for k in ("n_fft", "hop", "w_mag", "w_phase")))
    optimizer = torch.optim.Adam(model.parameters(), lr=SETTINGS["lr"])
    for step in range(SETTINGS["steps"]):
        wet, dry = decaying_notes(SETTINGS["batch"], SETTINGS["samples"])
        loss = criterion(model(wet), dry)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        print(f"step {step} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
