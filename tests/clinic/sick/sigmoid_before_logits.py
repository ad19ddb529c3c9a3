import torch
from torch import nn


class Segmenter(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 6, 3, padding=1), nn.ReLU(), nn.Conv2d(6, 1, 1))

    def forward(self, image):
        mask = torch.sigmoid(self.body(image))  # <- GS512
        return mask.squeeze(1)


def dice(mask, target):
    overlap = 2 * (mask * target).sum() + 1
    return 1 - overlap / (mask.sum() + target.sum() + 1)


torch.manual_seed(0)
model, criterion = Segmenter(), nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(4):
    image = torch.randn(2, 1, 8, 8)
    target = (image[:, 0] > 0).float()
    mask = model(image)
    loss = criterion(mask, target) + dice(mask, target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
