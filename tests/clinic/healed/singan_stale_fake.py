"""SinGAN: several generator updates per scale; torch 1.5 and later refuse the second one."""

import torch
from torch import nn

torch.manual_seed(0)


class Options:
    Dsteps, Gsteps, niter, alpha = 2, 3, 2, 10


def block(cin, cout):
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, padding=1), nn.BatchNorm2d(cout), nn.LeakyReLU(0.2)
    )


def train_single_scale(netD, netG, real, opt):
    optimizerD = torch.optim.Adam(netD.parameters(), lr=5e-4, betas=(0.5, 0.999))
    optimizerG = torch.optim.Adam(netG.parameters(), lr=5e-4, betas=(0.5, 0.999))
    for epoch in range(opt.niter):
        noise = torch.randn_like(real)
        for _j in range(opt.Dsteps):
            netD.zero_grad()
            errD_real = -netD(real).mean()
            fake = netG(noise)
            errD = errD_real + netD(fake.detach()).mean()
            errD.backward()
            optimizerD.step()
        for _j in range(opt.Gsteps):
            netG.zero_grad()
            fake = netG(noise)
            errG = -netD(fake).mean() + opt.alpha * nn.functional.mse_loss(fake, real)
            errG.backward()
            optimizerG.step()
        print(epoch, errD.item(), errG.item())


D = nn.Sequential(block(3, 8), nn.Conv2d(8, 1, 3, padding=1))
G = nn.Sequential(block(3, 8), block(8, 8), nn.Conv2d(8, 3, 3, padding=1), nn.Tanh())
train_single_scale(D, G, torch.rand(1, 3, 10, 10) * 2 - 1, Options())
