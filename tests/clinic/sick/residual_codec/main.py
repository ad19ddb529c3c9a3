import argparse

import torch
import torch.nn.functional as F

from model import Codec


def synth_waves(count, length, generator):
    t = torch.arange(length) / length
    pitch = 2 + 10 * torch.rand(count, 1, generator=generator)
    phase = 6.28 * torch.rand(count, 1, generator=generator)
    wave = torch.sin(6.28 * pitch * t + phase) + 0.3 * torch.sin(12.57 * pitch * t)
    return wave.unsqueeze(1)


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--commit-weight", type=float, default=1.0)
    return parser.parse_args()


def usage(indices, codes=16):
    flat = indices.reshape(-1, indices.shape[-1])
    return [len(flat[:, s].unique()) / codes for s in range(flat.shape[-1])]


def main():
    args = parse_args()
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(1)
    codec = Codec()
    optimizer = torch.optim.Adam(codec.parameters(), lr=args.lr)
    for step in range(args.steps):
        wave = synth_waves(args.batch_size, 64, generator)
        recon, indices, codebook, commit = codec(wave)
        recon_loss = F.l1_loss(recon, wave)
        loss = recon_loss + codebook.sum() + args.commit_weight * commit.sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 5 == 0:
            shares = " ".join(f"{u:.2f}" for u in usage(indices))
            print(f"{step:3d} recon {recon_loss.item():.4f} commit {commit.sum().item():.4f}")
            print(f"    codes in use: {shares}")


if __name__ == "__main__":
    main()
