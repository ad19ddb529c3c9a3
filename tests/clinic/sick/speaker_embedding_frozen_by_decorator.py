"""The verification loss falls by the projection alone: the encoder never moves."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class Frames(nn.Module):
    def __init__(self, size, dilation):
        super().__init__()
        self.conv = nn.Conv1d(size, size, 3, padding=dilation, dilation=dilation)
        self.norm = nn.GroupNorm(2, size)

    def forward(self, x):
        return x + torch.relu(self.norm(self.conv(x)))


class SpeakerEncoder(nn.Module):
    def __init__(self, mels=10, size=12):
        super().__init__()
        self.stem = nn.Conv1d(mels, size, 5, padding=2)
        self.frames = nn.Sequential(*(Frames(size, dilation) for dilation in (1, 2, 4)))
        self.pool = nn.Linear(2 * size, size)

    @torch.no_grad()  # <- GS304
    def embed(self, features):
        frames = self.frames(self.stem(features))
        return self.pool(torch.cat([frames.mean(2), frames.amax(2)], 1))

    def forward(self, features):
        return self.embed(features)


class Verifier(nn.Module):
    def __init__(self, speakers):
        super().__init__()
        self.encoder = SpeakerEncoder()
        self.project = nn.Linear(12, speakers)

    def forward(self, features):
        return self.project(F.normalize(self.encoder(features), dim=1))


model = Verifier(6)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
voices = torch.randn(6, 10, 1)
for step in range(8):
    speaker = torch.randint(6, (16,))
    loss = F.cross_entropy(model(voices[speaker] + 0.3 * torch.randn(16, 10, 20)), speaker)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
model.eval()
print(model.encoder.embed(voices.expand(-1, -1, 20)).norm(dim=1))
