"""Salient objects with depth: loss warns about shapes and the depth branch comes out blurred."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class CoNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU())
        self.edge = nn.Conv2d(8, 1, 1)
        self.depth = nn.Conv2d(8, 1, 1)

    def forward(self, x):
        h = self.trunk(x)
        return self.edge(h), self.depth(h)


class Trainer:
    def __init__(self, model, optimizer, loader, max_iter=3):
        self.model, self.optim, self.loader, self.max_iter = model, optimizer, loader, max_iter

    def train(self):
        for it, (image, edge, depth) in zip(range(self.max_iter), self.loader(), strict=False):
            pred_edge, pred_depth = self.model(image)
            loss1 = F.binary_cross_entropy_with_logits(pred_edge, edge)
            loss2 = F.smooth_l1_loss(pred_depth, depth.unsqueeze(1), reduction="sum") / 100
            loss = loss1 + loss2
            self.optim.zero_grad()
            loss.backward()
            self.optim.step()
            print(it, loss.item())


def batches():
    while True:
        yield torch.rand(2, 3, 16, 16), torch.rand(2, 1, 16, 16), torch.rand(2, 16, 16)


net = CoNet()
Trainer(net, torch.optim.SGD(net.parameters(), lr=1e-3), batches).train()
