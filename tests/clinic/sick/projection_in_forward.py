import torch
from torch import nn


class PatchEncoder(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.convolution = nn.Conv2d(1, width, 3, stride=2)
        self.norm = nn.GroupNorm(2, width)

    def forward(self, image):
        features = torch.relu(self.norm(self.convolution(image))).flatten(1)
        project = nn.Linear(features.shape[1], 10)  # <- GS307
        return project(features)


def run(model, batches):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss()
    for image, label in batches:
        optimizer.zero_grad()
        loss = criterion(model(image), label)
        loss.backward()
        optimizer.step()
        yield loss.item()


torch.manual_seed(0)
batches = [(torch.randn(4, 1, 9, 9), torch.randint(0, 10, (4,))) for _ in range(5)]
print(list(run(PatchEncoder(4), batches)))
