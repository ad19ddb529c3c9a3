"""Neural style with LBFGS: features of style and content are targets, the picture is learned."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)


def gram(x):
    b, c, h, w = x.shape
    f = x.view(b * c, h * w)
    return (f @ f.t()).div(b * c * h * w)


class Loss(nn.Module):
    def __init__(self, target, transform=lambda t: t):
        super().__init__()
        self.transform = transform
        self.target = transform(target).detach()

    def forward(self, x):
        self.loss = F.mse_loss(self.transform(x), self.target)
        return x


cnn = nn.Sequential(nn.Conv2d(3, 6, 3, padding=1), nn.ReLU(), nn.Conv2d(6, 6, 3, padding=1)).eval()
content, style = torch.rand(1, 3, 12, 12), torch.rand(1, 3, 12, 12)
model, losses = nn.Sequential(), []
for _i, layer in enumerate(cnn):
    model.append(layer)
    if isinstance(layer, nn.Conv2d):
        losses.append(Loss(model(style), gram))
        losses.append(Loss(model(content)))
        model.extend(losses[-2:])
picture = content.clone()
picture.requires_grad_(True)
model.requires_grad_(False)
optimizer = torch.optim.LBFGS([picture])
run = [0]
while run[0] <= 12:

    def closure():
        with torch.no_grad():
            picture.clamp_(0, 1)
        optimizer.zero_grad()
        model(picture)
        score = sum(part.loss for part in losses)
        score.backward()
        run[0] += 1
        return score

    optimizer.step(closure)
with torch.no_grad():
    picture.clamp_(0, 1)
print(run[0], sum(part.loss.item() for part in losses))
