"""GPU memory climbs during the epoch and falls at its end."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class DepthModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(3, 6, 3, padding=1), nn.ELU(), nn.Conv2d(6, 1, 3, padding=1)
        )

    def training_step(self, batch):
        image, depth = batch
        output = nn.functional.softplus(self.net(image))
        return {"loss": (output - depth).abs().mean(), "metrics": {}}

    def training_epoch_end(self, outputs):
        return torch.stack([o["loss"] for o in outputs]).mean().item()


class HorovodLikeTrainer:
    def __init__(self, max_epochs):
        self.max_epochs = max_epochs

    def fit(self, module, loader):
        optimizer = torch.optim.Adam(module.parameters(), lr=2e-4)
        for _ in range(self.max_epochs):
            print("avg", self.train(loader, module, optimizer))

    def train(self, dataloader, module, optimizer):
        module.train()
        outputs = []
        for batch in dataloader:
            optimizer.zero_grad()
            output = module.training_step(batch)
            output["loss"].backward()
            optimizer.step()
            outputs.append(output)  # <- GS502
        return module.training_epoch_end(outputs)


torch.manual_seed(0)
data = TensorDataset(torch.rand(40, 3, 8, 8), torch.rand(40, 1, 8, 8))
HorovodLikeTrainer(2).fit(DepthModel(), DataLoader(data, batch_size=4, shuffle=True))
