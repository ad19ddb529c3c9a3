import torch.nn as nn


class GradientReversalLayer(nn.Module):
    def __init__(self, alpha=1.0):
        super().__init__()
        self.alpha = alpha

    def forward(self, x):
        return x  # <- GS000

    def backward(self, grad):
        return -self.alpha * grad  # <~ GS000


class SpeakerClassifier(nn.Module):
    """Tries to tell the speaker from the text encoding, through a reversed gradient."""

    def __init__(self, dim, hidden, speakers, alpha):
        super().__init__()
        self.reverse = GradientReversalLayer(alpha)
        self.net = nn.Sequential(nn.Linear(dim, hidden), nn.ReLU(), nn.Linear(hidden, speakers))

    def forward(self, encoding):
        return self.net(self.reverse(encoding).mean(1))
