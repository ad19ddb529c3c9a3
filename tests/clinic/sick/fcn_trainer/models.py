import torch.nn as nn
import torch.nn.functional as F


def block(cin, cout):
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, padding=1), nn.BatchNorm2d(cout), nn.ReLU(), nn.MaxPool2d(2)
    )


class FCN(nn.Module):
    def __init__(self, n_class, width=12):
        super().__init__()
        self.stage1 = block(1, width)
        self.stage2 = block(width, 2 * width)
        self.fc6 = nn.Conv2d(2 * width, 4 * width, 3, padding=1)
        self.drop6 = nn.Dropout2d(0.5)
        self.score_fr = nn.Conv2d(4 * width, n_class, 1)
        self.score_pool1 = nn.Conv2d(width, n_class, 1)

    def forward(self, x):
        pool1 = self.stage1(x)
        h = self.drop6(F.relu(self.fc6(self.stage2(pool1))))
        up = F.interpolate(self.score_fr(h), scale_factor=2, mode="bilinear", align_corners=False)
        h = up + self.score_pool1(pool1)
        return F.interpolate(h, size=x.shape[2:], mode="bilinear", align_corners=False)
