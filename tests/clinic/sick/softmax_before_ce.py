"""Ten classes; the loss never gets below 1.36 and soon stands still."""

import torch
import torch.nn as nn


class Classifier(nn.Module):
    def __init__(self, n_feat, n_class):
        super().__init__()
        self.fc1 = nn.Linear(n_feat, 100)
        self.fc2 = nn.Linear(100, n_class)

    def forward(self, x):
        x = torch.relu(self.fc1(x))
        return torch.softmax(self.fc2(x), dim=1)  # <- GS512


torch.manual_seed(0)
X = torch.rand(80, 30) * 255
t = torch.randint(0, 10, (80,))
net = Classifier(30, 10)
loss_fn = nn.CrossEntropyLoss()
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for ep in range(3):
    for i in range(0, 80, 20):
        xb, tb = X[i : i + 20], t[i : i + 20]
        loss = loss_fn(net(xb), tb)
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(ep, loss.item())
