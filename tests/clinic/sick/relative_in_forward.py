"""Stand-alone attention: the relative embeddings look random after every epoch."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class AttentionConv(nn.Module):
    def __init__(self, channels, kernel=3):
        super().__init__()
        self.channels, self.kernel = channels, kernel
        self.query = nn.Conv2d(1, channels, 1)
        self.key = nn.Conv2d(1, channels, 1)
        self.value = nn.Conv2d(1, channels, 1)

    def forward(self, x):
        batch, _, height, width = x.shape
        rel = nn.Parameter(torch.randn(self.channels, self.kernel**2))  # <- GS307
        windows = F.unfold(self.key(F.pad(x, [1] * 4)), self.kernel)
        keys = windows.view(batch, self.channels, self.kernel**2, height, width)
        keys = keys + rel[None, :, :, None, None]
        values = F.unfold(self.value(F.pad(x, [1] * 4)), self.kernel).view_as(keys)
        weights = (self.query(x).unsqueeze(2) * keys).softmax(dim=2)
        return (weights * values).sum(2)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = AttentionConv(4)
        self.fc = nn.Linear(4, 3)

    def forward(self, x):
        return self.fc(self.attention(x).mean((2, 3)))


loader = DataLoader(
    TensorDataset(torch.randn(24, 1, 6, 6), torch.randint(0, 3, (24,))), batch_size=8
)
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
for epoch in range(2):
    for images, labels in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(net(images), labels)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
