import torch
from torch import nn


class GradientReversalLayer(nn.Module):  # <~ GS411
    """Identity on the way forward, the opposite direction on the way back."""

    def __init__(self, scale=1.0):
        super().__init__()
        self.scale = scale

    def forward(self, x):
        return x  # <~ GS411

    def backward(self, grad_output):  # <- GS411
        return -self.scale * grad_output


class TextEncoder(nn.Module):
    def __init__(self, n_symbols, dim):
        super().__init__()
        self.embed = nn.Embedding(n_symbols, dim)
        self.conv = nn.Conv1d(dim, dim, 5, padding=2)
        self.rnn = nn.GRU(dim, dim // 2, batch_first=True, bidirectional=True)

    def forward(self, text):
        x = torch.relu(self.conv(self.embed(text).transpose(1, 2))).transpose(1, 2)
        return self.rnn(x)[0]


class SpeakerClassifier(nn.Module):
    def __init__(self, dim, n_speakers):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, n_speakers))

    def forward(self, x):
        return self.net(x)
