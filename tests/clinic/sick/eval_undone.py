import torch
from torch import nn


class Transfer(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten())
        self.head = nn.Linear(144, 2)

    def forward(self, x):
        return self.head(self.body(x))


def freeze(module):
    module.eval()  # <- GS314
    for parameter in module.parameters():
        parameter.requires_grad = False


torch.manual_seed(0)
model = Transfer()
freeze(model.body)
optimizer = torch.optim.Adam(model.head.parameters())
for epoch in range(2):
    model.train()
    for _ in range(2):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(
            model(torch.randn(6, 1, 8, 8)), torch.randint(0, 2, (6,))
        )
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print(epoch, model(torch.randn(2, 1, 8, 8)).argmax(1))
