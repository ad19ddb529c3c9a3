import torch
from torch import nn


class Classifier(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(6, width), nn.Tanh())  # <~ GS307
        self.head = nn.Linear(width, 3)

    def forward(self, x):
        return self.head(torch.relu(self.encoder(x)))

    def set_encoder(self, learns):
        for parameter in self.encoder.parameters():
            parameter.requires_grad = learns


def make_optimizer(model, rate):
    chosen = filter(lambda parameter: parameter.requires_grad, model.parameters())
    return torch.optim.AdamW(chosen, lr=rate)  # <- GS307


torch.manual_seed(0)
model = Classifier()
model.set_encoder(False)
optimizer = make_optimizer(model, 1e-3)
for epoch in range(5):
    if epoch == 2:
        model.set_encoder(True)
    x, y = torch.randn(16, 6), torch.randint(0, 3, (16,))
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    print(epoch, loss.item())
