"""Video refocusing: the loss curve is noise around its first value."""

import torch
from torch import nn

torch.manual_seed(0)


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Conv1d(2, 8, 3, padding=1)
        self.mid = nn.Conv1d(8, 8, 3, padding=1)
        self.up = nn.Conv1d(8, 1, 3, padding=1)

    def forward(self, noisy, sigma):
        x = torch.cat([noisy, sigma[:, None, None].expand_as(noisy)], 1)
        return self.up(torch.relu(self.mid(torch.relu(self.down(x)))))


class Accelerator:
    def backward(self, loss):
        loss.backward()


def main():
    accelerator, unet = Accelerator(), UNet()
    optimizer = torch.optim.AdamW(unet.parameters(), lr=1e-4)
    lr_scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda _: 1.0)
    for step in range(6):
        latents, sigma = torch.randn(4, 1, 16), torch.rand(4)
        noise = torch.randn_like(latents)
        pred = unet(latents + sigma[:, None, None] * noise, sigma)
        loss = nn.functional.mse_loss(pred, noise)
        accelerator.backward(loss)
        optimizer.step()
        lr_scheduler.step()
        optimizer.zero_grad()
        print(step, loss.item())


main()
