"""RK-Net: "output 0 of ReluBackward0, is at version 4; expected version 0 instead"."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class USAM(nn.Module):
    def __init__(self, kernel_size=3, polish=True):
        super().__init__()
        self.polish = polish
        self.register_buffer("kernel", torch.ones(1, 1, kernel_size, kernel_size))
        self.conv1 = nn.Conv2d(1, 1, 3, padding=1, bias=False)

    def forward(self, x):
        x_pooled = x.sum(1, keepdim=True)
        summed = F.conv2d(x_pooled, self.kernel, padding=1) / 9.0
        key_points = F.relu(self.conv1(x_pooled) - summed)
        att = F.relu(key_points)  # <~ GS401
        if self.polish:
            att[:, :, :, 0] = 0  # <~ GS401
            att[:, :, :, -1] = 0  # <~ GS401
            att[:, :, 0, :] = 0  # <~ GS401
            att[:, :, -1, :] = 0  # <- GS401
        return x + att * x


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 6, 3, padding=1)
        self.usam = USAM()
        self.fc = nn.Linear(6, 4)

    def forward(self, x):
        return self.fc(self.usam(self.stem(x)).mean((-1, -2)))


def train(net, data, epochs):
    opt = torch.optim.SGD(net.parameters(), 0.01)
    for _epoch in range(epochs):
        for x, y in data:
            opt.zero_grad()
            loss = nn.CrossEntropyLoss()(net(x), y)
            loss.backward()
            opt.step()


train(Net(), ((torch.randn(4, 3, 8, 8), torch.randint(0, 4, (4,))) for _ in range(3)), 1)
