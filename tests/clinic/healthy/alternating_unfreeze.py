"""ULMFiT-like: groups thawed one after another, rates by depth, in-place edits that are fine."""

import torch
from torch import nn

torch.manual_seed(0)


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        block = nn.Linear(8, 8)
        self.layers = nn.ModuleList([nn.Linear(5, 8), block, block, nn.Linear(8, 8)])
        self.norm = nn.LayerNorm(8)
        self.out = nn.Linear(8, 2)
        for m in self.layers:
            nn.init.orthogonal_(m.weight)
            m.bias.data.zero_()
        with torch.no_grad():
            self.out.weight.copy_(torch.randn(2, 8) * 0.01)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x).add_(0.01)
            x = torch.relu(x.mul_(1.0))
        pad = torch.zeros(len(x), 1, 8)
        pad[:, 0] = self.norm(x)
        return self.out(pad.squeeze(1))


model = Shared()
stages = [model.out, model.norm, model.layers[3], model.layers]
opt = torch.optim.SGD(
    [{"params": list(m.parameters()), "lr": 0.1 / (i + 1)} for i, m in enumerate(stages[:3])]
    + [
        {
            "params": {id(p): p for layer in model.layers[:3] for p in layer.parameters()}.values(),
            "lr": 0.02,
        }
    ],
    lr=0.1,
)
model.requires_grad_(False)
for stage in stages:
    stage.requires_grad_(True)
    for _ in range(2):
        x, y = torch.randn(16, 5), torch.randint(0, 2, (16,))
        loss = nn.functional.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(type(stage).__name__, loss.item())
