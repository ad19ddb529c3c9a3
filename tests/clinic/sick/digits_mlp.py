"""A hand-made trainer with modules that define their own training step."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class TrainableModule(nn.Module):
    def log(self, name, value):
        self.logs.setdefault(name, []).append(float(value))

    def training_step(self, batch, index):
        raise NotImplementedError

    def configure_optimizers(self):
        raise NotImplementedError


class DigitsMLP(TrainableModule):
    def __init__(self, inputs=36, hidden=(24, 16), classes=6, lr=0.2):
        super().__init__()
        self.lr = lr
        self.logs = {}
        sizes = [inputs, *hidden]
        layers = []
        for a, b in zip(sizes[:-1], sizes[1:]):
            layers += [nn.Linear(a, b), nn.Sigmoid()]
        layers.append(nn.Linear(sizes[-1], classes))
        self.net = nn.Sequential(*layers)
        self.apply(self.init_weights)

    @staticmethod
    def init_weights(module):
        if isinstance(module, nn.Linear):
            nn.init.constant_(module.weight, 0.05)  # <- GS207
            nn.init.zeros_(module.bias)

    def forward(self, x):
        return self.net(x.flatten(1))

    def training_step(self, batch, index):
        images, labels = batch
        logits = self(images)
        loss = F.cross_entropy(logits, labels)
        self.log("train_loss", loss.detach())
        return loss

    @torch.no_grad()
    def validation_step(self, batch, index):
        images, labels = batch
        self.log("val_acc", (self(images).argmax(1) == labels).float().mean())

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.lr, momentum=0.9)


class Trainer:
    def __init__(self, max_epochs, gradient_clip_val=None):
        self.max_epochs = max_epochs
        self.gradient_clip_val = gradient_clip_val

    def fit(self, module, train_loader, val_loader):
        optimizer = module.configure_optimizers()
        for epoch in range(self.max_epochs):
            module.train()
            for index, batch in enumerate(train_loader):
                loss = module.training_step(batch, index)
                optimizer.zero_grad()
                loss.backward()
                if self.gradient_clip_val:
                    nn.utils.clip_grad_norm_(module.parameters(), self.gradient_clip_val)
                optimizer.step()
            module.eval()
            for index, batch in enumerate(val_loader):
                module.validation_step(batch, index)
            summary = {k: round(sum(v) / len(v), 4) for k, v in module.logs.items()}
            module.logs.clear()
            print(f"epoch {epoch}: {summary}")


def loaders(classes=6):
    generator = torch.Generator().manual_seed(5)
    prototypes = torch.randn(classes, 6, 6, generator=generator)
    labels = torch.randint(0, classes, (240,), generator=generator)
    images = prototypes[labels] + 0.7 * torch.randn(240, 6, 6, generator=generator)
    data = torch.utils.data.TensorDataset(images, labels)
    train, val = torch.utils.data.random_split(data, [192, 48], generator=generator)
    make = torch.utils.data.DataLoader
    return make(train, 24, shuffle=True, generator=generator), make(val, 48)


if __name__ == "__main__":
    torch.manual_seed(4)
    Trainer(max_epochs=4, gradient_clip_val=5.0).fit(DigitsMLP(), *loaders())
