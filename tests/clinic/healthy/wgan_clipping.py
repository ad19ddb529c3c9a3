"""WGAN: five critic steps, weights clipped after each, one generator step; samples are plotted."""

import torch
from torch import nn, optim

torch.manual_seed(0)


def weights_init(m):
    if isinstance(m, nn.Linear):
        m.weight.data.normal_(0.0, 0.2)
        m.bias.data.fill_(0)


netG = nn.Sequential(nn.Linear(4, 24), nn.ReLU(True), nn.Linear(24, 2))
netD = nn.Sequential(nn.Linear(2, 24), nn.LeakyReLU(0.2, inplace=True), nn.Linear(24, 1))
netG.apply(weights_init)
netD.apply(weights_init)
optG, optD = (optim.RMSprop(n.parameters(), lr=5e-4) for n in (netG, netD))
one = torch.tensor(1.0)
fixed, pictures = torch.randn(8, 4), []
for gen_iteration in range(3):
    for p in netD.parameters():
        p.requires_grad = True
    for _ in range(5):
        netD.zero_grad()
        err_real = netD(torch.randn(32, 2) + 2).mean()
        err_real.backward(-one)
        fake = netG(torch.randn(32, 4)).detach()
        err_fake = netD(fake).mean()
        err_fake.backward(one)
        optD.step()
        for p in netD.parameters():
            p.data.clamp_(-0.05, 0.05)
    for p in netD.parameters():
        p.requires_grad = False
    netG.zero_grad()
    err_g = netD(netG(torch.randn(32, 4))).mean()
    err_g.backward(-one)
    optG.step()
    pictures.append(netG(fixed).detach().cpu().numpy().mean(0).tolist())
    print(gen_iteration, (err_real - err_fake).item(), err_g.item())
