import argparse

import torch
import torch.nn.functional as F

from field import RadianceField
from rigid import RigidBlurring


def config():
    parser = argparse.ArgumentParser()
    parser.add_argument("--num_views", type=int, default=6)
    parser.add_argument("--rays_per_view", type=int, default=64)
    parser.add_argument("--n_rand", type=int, default=64)
    parser.add_argument("--n_iters", type=int, default=24)
    parser.add_argument("--kernel_start_iter", type=int, default=12)
    parser.add_argument("--lrate", type=float, default=5e-3)
    return parser.parse_args()


def load_views(args):
    n = args.num_views * args.rays_per_view
    view_idx = torch.arange(args.num_views).repeat_interleave(args.rays_per_view)
    center = torch.stack(
        [
            torch.linspace(-0.3, 0.3, args.num_views),
            torch.zeros(args.num_views),
            -torch.ones(args.num_views),
        ],
        -1,
    )
    rays_o = center[view_idx]
    rays_d = F.normalize(torch.cat([torch.rand(n, 2) - 0.5, torch.ones(n, 1)], -1), dim=-1)
    hit = rays_o + 1.5 * rays_d
    rgb = 0.5 + 0.4 * torch.stack(
        [torch.sin(2 * hit[:, 0]), torch.cos(2 * hit[:, 1]), torch.sin(hit.sum(-1))], -1
    )
    return rays_o, rays_d, view_idx, rgb


def main():
    args = config()
    torch.manual_seed(0)
    rays_o, rays_d, view_idx, rgb = load_views(args)
    field = RadianceField()
    kernel = RigidBlurring(args.num_views)
    optimizer = torch.optim.Adam(
        list(field.parameters()) + list(kernel.parameters()), lr=args.lrate
    )
    for i in range(1, args.n_iters + 1):
        pick = torch.randint(0, len(rgb), (args.n_rand,))
        if i <= args.kernel_start_iter:
            pred = field.render(rays_o[pick], rays_d[pick])
        else:
            new_o, new_d, weight = kernel(rays_o[pick], rays_d[pick], view_idx[pick])
            pred = (field.render(new_o, new_d) * weight.unsqueeze(-1)).sum(1)
        loss = F.mse_loss(pred, rgb[pick])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if i % 4 == 0:
            print(f"[TRAIN] iter {i} loss {loss.item():.5f}")


if __name__ == "__main__":
    main()
