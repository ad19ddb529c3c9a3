import torch
from torch.utils.data import DataLoader, TensorDataset

from losses import HairMatLoss
from network import HairMatteNet


class Solver:
    def __init__(self, loader, lr=4e-3, epochs=4, log_step=2):
        self.loader = loader
        self.epochs = epochs
        self.log_step = log_step
        self.net = HairMatteNet()
        self.criterion = HairMatLoss(gradient_weight=0.5)
        self.optimizer = torch.optim.Adadelta(self.net.parameters(), lr=lr * 100, eps=1e-7)

    def train(self):
        for epoch in range(self.epochs):
            for step, (image, gray, mask) in enumerate(self.loader):
                self.net.train()
                logits = self.net(image)
                loss, parts = self.criterion(logits, gray, mask)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                if step % self.log_step == 0:
                    print(
                        f"[{epoch}/{self.epochs}] step {step} "
                        f"bce {parts['bce'].item():.4f} edges {parts['edges'].item():.4f}"
                    )


def portraits(count, size=16):
    columns = torch.arange(size).float()
    masks = []
    for _ in range(count):
        wave = size / 2 + 3 * torch.sin(columns / 3 + 6 * torch.rand(1))
        masks.append((torch.arange(size)[:, None] < wave[None]).long())
    mask = torch.stack(masks)
    image = mask[:, None].float() * torch.tensor([0.6, 0.4, 0.3]).view(1, 3, 1, 1)
    image = image + 0.15 * torch.randn(count, 3, size, size)
    return TensorDataset(image, image.mean(1, keepdim=True), mask)


if __name__ == "__main__":
    torch.manual_seed(19)
    Solver(DataLoader(portraits(16), batch_size=4, shuffle=True)).train()
