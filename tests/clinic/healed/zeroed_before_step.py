"""Segmentation training: nothing improves until I move zero_grad."""

import torch
from torch import nn

torch.manual_seed(0)


class AverageMeter:
    def __init__(self):
        self.total, self.count = 0.0, 0

    def update(self, value, n):
        self.total, self.count = self.total + value * n, self.count + n

    avg = property(lambda self: self.total / max(self.count, 1))


def train_seg(model, loader, optimizer, criterion):
    losses = AverageMeter()
    for inputs, target in loader:
        outputs = model(inputs)
        loss = criterion(outputs, target).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.update(loss.item(), inputs.size(0))
    return losses.avg


net = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.PReLU(4), nn.Conv2d(4, 3, 1))
data = [(torch.randn(2, 1, 8, 8), torch.randint(0, 3, (2, 8, 8))) for _ in range(4)]
optimizer = torch.optim.Adam(net.parameters(), 5e-4)
for epoch in range(2):
    print(epoch, train_seg(net, data, optimizer, nn.CrossEntropyLoss(reduction="none")))
