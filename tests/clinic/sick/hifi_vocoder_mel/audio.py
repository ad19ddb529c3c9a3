import math

import torch
from torch import nn


def mel_filters(n_mels, n_fft, sample_rate):
    def to_mel(f):
        return 2595.0 * math.log10(1.0 + f / 700.0)

    edges = torch.linspace(0.0, to_mel(sample_rate / 2), n_mels + 2)
    hz = 700.0 * (10.0 ** (edges / 2595.0) - 1.0)
    freqs = torch.linspace(0.0, sample_rate / 2, n_fft // 2 + 1)
    up = (freqs[None] - hz[:-2, None]) / (hz[1:-1] - hz[:-2])[:, None]
    down = (hz[2:, None] - freqs[None]) / (hz[2:] - hz[1:-1])[:, None]
    return torch.minimum(up, down).clamp(min=0.0)


class MelSpectrogram(nn.Module):
    def __init__(self, n_fft=128, hop=32, n_mels=16, sample_rate=8000):
        super().__init__()
        self.n_fft = n_fft
        self.hop = hop
        self.register_buffer("window", torch.hann_window(n_fft))
        self.register_buffer("basis", mel_filters(n_mels, n_fft, sample_rate))

    def spectrum(self, wav):
        spec = torch.stft(
            wav, self.n_fft, self.hop, window=self.window, center=True, return_complex=True
        )
        return torch.sqrt(spec.real.square() + spec.imag.square() + 1e-9)

    def forward(self, wav):
        magnitudes = self.spectrum(wav)
        magnitudes = magnitudes.data  # <- GS303
        mel = torch.matmul(self.basis, magnitudes)
        return torch.log(mel.clamp(min=1e-5))
