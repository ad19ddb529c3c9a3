"""R1 regularisation through a differentiable augmentation."""

import argparse

import torch
from torch import autograd, nn, optim
from torch.nn import functional as F


def augment(img, p):
    theta = torch.eye(2, 3).repeat(len(img), 1, 1) + p * torch.randn(len(img), 2, 3) * 0.1
    grid = F.affine_grid(theta, img.shape, align_corners=False)
    return F.grid_sample(img, grid, mode="bilinear", padding_mode="reflection", align_corners=False)


def d_r1_loss(real_pred, real_img):
    (grad_real,) = autograd.grad(outputs=real_pred.sum(), inputs=real_img, create_graph=True)
    return grad_real.pow(2).reshape(grad_real.shape[0], -1).sum(1).mean()


def d_logistic_loss(real_pred, fake_pred):
    return F.softplus(-real_pred).mean() + F.softplus(fake_pred).mean()


def train(args):
    g = nn.Sequential(nn.Linear(4, 48), nn.Tanh(), nn.Unflatten(1, (3, 4, 4)))
    d = nn.Sequential(nn.Conv2d(3, 6, 3), nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(24, 1))
    d_optim = optim.Adam(d.parameters(), lr=args.lr)
    for i in range(args.iter):
        real_img = torch.rand(6, 3, 4, 4)
        fake_img = g(torch.randn(6, 4)).detach()
        d_loss = d_logistic_loss(d(augment(real_img, 0.1)), d(augment(fake_img, 0.1)))
        d.zero_grad()
        d_loss.backward()
        d_optim.step()
        if i % args.d_reg_every == 0:
            real_img.requires_grad = True
            r1_loss = d_r1_loss(d(augment(real_img, 0.1)), real_img)
            d.zero_grad()
            (args.r1 / 2 * r1_loss * args.d_reg_every).backward()
            d_optim.step()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--iter", type=int, default=4)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--r1", type=float, default=10)
    parser.add_argument("--d_reg_every", type=int, default=2)
    torch.manual_seed(0)
    train(parser.parse_args())
