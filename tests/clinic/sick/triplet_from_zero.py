"""Triplet loss on a fine-tuned net; the loss is the margin for ever."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class TripletNet(nn.Module):
    def __init__(self, backbone, dim):
        super().__init__()
        self.backbone = backbone
        linear = nn.Linear(32, dim)
        linear.weight.data.zero_()  # only trains last layer to start
        linear.bias.data.zero_()
        self.linear = linear

    def forward(self, x):
        return self.linear(self.backbone(x))


def triplet(anchor, positive, negative, margin=0.2):
    d_ap = (anchor - positive).pow(2).sum(1)  # <- GS205
    d_an = (anchor - negative).pow(2).sum(1)  # <~ GS205
    return F.relu(d_ap - d_an + margin).mean()


def main():
    torch.manual_seed(0)
    net = TripletNet(nn.Sequential(nn.Linear(10, 32), nn.ReLU()), 8)
    opt = torch.optim.SGD(net.parameters(), lr=0.05)
    for it in range(4):
        base = torch.randn(16, 10)
        loss = triplet(
            net(base), net(base + 0.1 * torch.randn_like(base)), net(torch.randn(16, 10))
        )
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(it, loss.item())


main()
