import argparse
import logging

import torch

from train import train_model
from unet import UNet


def get_args():
    parser = argparse.ArgumentParser(description="Train the UNet on images and target masks")
    parser.add_argument("--epochs", "-e", type=int, default=4)
    parser.add_argument("--batch-size", "-b", type=int, default=4)
    parser.add_argument("--learning-rate", "-l", type=float, default=5e-2)
    parser.add_argument("--amp", action="store_false", default=True)
    return parser.parse_args([])


def fake_cars(count, size=16):
    images = torch.rand(count, 3, size, size)
    masks = torch.zeros(count, size, size, dtype=torch.long)
    for i in range(count):
        top, left = torch.randint(2, 7, (2,)).tolist()
        masks[i, top : top + 6, left : left + 7] = 1
    images += masks[:, None] * 0.5
    return torch.utils.data.TensorDataset(images, masks)


if __name__ == "__main__":
    args = get_args()
    logging.basicConfig(level=logging.INFO, format="%(levelname)s: %(message)s")
    torch.manual_seed(0)
    loader = torch.utils.data.DataLoader(fake_cars(12), args.batch_size, shuffle=True)
    train_model(UNet(3, 2), loader, args.epochs, args.learning_rate, amp=args.amp)
