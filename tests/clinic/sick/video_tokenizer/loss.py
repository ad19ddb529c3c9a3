import torch
import torch.nn.functional as F
from torch import nn

from misc import RecordingProbe


def frozen_classifier():
    net = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(8, 8, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(8, 12, 3, stride=2, padding=1),
        nn.ReLU(),
    )
    return net.eval().requires_grad_(False)


class PerceptualLoss(nn.Module):
    """Distance of random frames of two videos in the features of a fixed network."""

    def __init__(self, layers=("1", "3", "5"), num_frames=2):
        super().__init__()
        self.percept_model = frozen_classifier()
        self.num_frames = num_frames
        self.probe = RecordingProbe().attach(self.percept_model, layers)

    def features(self, frames):
        self.probe.clean()
        self.percept_model(frames)
        return self.probe.features

    def forward(self, fake, real):
        pick = torch.randint(0, fake.shape[2], (self.num_frames,))
        fake = fake[:, :, pick].transpose(1, 2).flatten(0, 1)
        real = real[:, :, pick].transpose(1, 2).flatten(0, 1)
        fake_features, real_features = self.features(fake), self.features(real)
        return sum(F.mse_loss(fake_features[k], real_features[k]) for k in fake_features)
