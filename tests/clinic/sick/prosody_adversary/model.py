import torch
import torch.nn as nn

from layers import SpeakerClassifier


class ProsodyTTS(nn.Module):
    def __init__(self, hparams):
        super().__init__()
        dim = hparams["dim"]
        self.phonemes = nn.Embedding(hparams["symbols"], dim)
        self.speakers = nn.Embedding(hparams["speakers"], dim)
        self.reference = nn.GRU(hparams["mels"], dim, batch_first=True)
        self.encoder = nn.GRU(2 * dim, dim, batch_first=True)
        self.decoder = nn.GRU(2 * dim, dim, batch_first=True)
        self.mel_out = nn.Linear(dim, hparams["mels"])
        self.classifier = SpeakerClassifier(dim, dim, hparams["speakers"], hparams["alpha"])

    def forward(self, text, mel, speaker):
        _, prosody = self.reference(mel)
        symbols = self.phonemes(text)
        prosody = prosody[0][:, None].expand_as(symbols)
        encoding, _ = self.encoder(torch.cat([symbols, prosody], -1))
        voice = self.speakers(speaker)[:, None].expand_as(encoding)
        decoded, _ = self.decoder(torch.cat([encoding, voice], -1))
        return self.mel_out(decoded), self.classifier(encoding)
