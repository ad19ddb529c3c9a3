import torch
import torch.nn as nn
import torch.nn.functional as F


class ConvStack(nn.Module):
    def __init__(self, features, width, out):
        super().__init__()
        self.cnn = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.MaxPool2d((1, 2)),
        )
        self.fc = nn.Linear(width * (features // 2), out)

    def forward(self, mel):
        x = self.cnn(mel[:, None])
        return self.fc(x.transpose(1, 2).flatten(-2))


class Transcriber(nn.Module):
    def __init__(self, features, pitches, width=4, hidden=12):
        super().__init__()
        self.onset_stack = nn.Sequential(ConvStack(features, width, hidden), nn.ReLU())
        self.onset_rnn = nn.GRU(hidden, hidden, batch_first=True)
        self.onset_out = nn.Linear(hidden, pitches)
        self.frame_stack = ConvStack(features, width, pitches)
        self.combined_rnn = nn.GRU(2 * pitches, hidden, batch_first=True)
        self.frame_out = nn.Linear(hidden, pitches)

    def forward(self, mel):
        onset = torch.sigmoid(self.onset_out(self.onset_rnn(self.onset_stack(mel))[0]))
        activation = torch.sigmoid(self.frame_stack(mel))
        combined, _ = self.combined_rnn(torch.cat([onset.detach(), activation], -1))
        return onset, torch.sigmoid(self.frame_out(combined))

    def run_on_batch(self, batch):
        onset, frame = self(batch["mel"])
        losses = {
            "onset": F.binary_cross_entropy(onset, batch["onset"], reduction="sum"),
            "frame": F.binary_cross_entropy(frame, batch["frame"], reduction="sum"),
        }
        return {"onset": onset, "frame": frame}, losses
