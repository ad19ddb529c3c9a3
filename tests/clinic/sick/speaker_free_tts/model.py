import torch
import torch.nn.functional as F
from modules import GradientReversalLayer, SpeakerClassifier, TextEncoder
from torch import nn


class Synthesizer(nn.Module):
    """Speaks a text in any voice; what the encoder says should not tell whose voice it is."""

    def __init__(self, n_symbols=30, n_speakers=3, dim=24, n_mels=10):
        super().__init__()
        self.encoder = TextEncoder(n_symbols, dim)
        self.reversal = GradientReversalLayer(scale=1.0)
        self.classifier = SpeakerClassifier(dim, n_speakers)
        self.speakers = nn.Embedding(n_speakers, dim)
        self.decoder = nn.GRU(2 * dim, dim, batch_first=True)
        self.mel = nn.Linear(dim, n_mels)

    def forward(self, text, speaker):
        encoded = self.encoder(text)
        guess = self.classifier(self.reversal(encoded)).mean(dim=1)
        voice = self.speakers(speaker).unsqueeze(1).expand_as(encoded)
        hidden, _ = self.decoder(torch.cat([encoded, voice], dim=-1))
        return self.mel(hidden), guess


class SynthesizerLoss(nn.Module):
    def __init__(self, adversarial_weight=0.5):
        super().__init__()
        self.adversarial_weight = adversarial_weight

    def forward(self, mel, guess, target, speaker):
        mel_loss = F.l1_loss(mel, target)
        speaker_loss = F.cross_entropy(guess, speaker)
        return mel_loss + self.adversarial_weight * speaker_loss, mel_loss, speaker_loss
