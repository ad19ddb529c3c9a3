"""A trainer of its own class; NaN in the second batch."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Trainer:
    def __init__(self, unet, loader, lr=1e-4):
        self.unet = unet
        self.loader = loader
        self.optimizer = torch.optim.AdamW(unet.parameters(), lr=lr)
        self.global_step = 0

    def compute_loss(self, batch):
        noise = torch.randn_like(batch["latents"])
        pred = self.unet(batch["latents"] + noise)
        loss = F.mse_loss(pred, noise, reduction="none")
        masks = batch["masks"].expand_as(loss)
        loss = loss * masks
        loss = loss.sum([1, 2, 3, 4]) / masks.sum([1, 2, 3, 4])  # <- GS101
        return loss.mean()

    def fit(self):
        for batch in self.loader:
            self.optimizer.zero_grad()
            loss = self.compute_loss(batch)
            loss.backward()
            nn.utils.clip_grad_norm_(self.unet.parameters(), 1.0)
            self.optimizer.step()
            self.global_step += 1


if __name__ == "__main__":
    torch.manual_seed(1)
    unet = nn.Sequential(nn.Conv3d(4, 8, 3, padding=1), nn.SiLU(), nn.Conv3d(8, 4, 3, padding=1))
    data = []
    for k in range(4):
        masks = (torch.rand(2, 1, 2, 8, 8) > 0.5).float()
        if k == 1:
            masks[1] = 0.0  # nobody found in this clip
        data.append({"latents": torch.randn(2, 4, 2, 8, 8), "masks": masks})
    Trainer(unet, data).fit()
