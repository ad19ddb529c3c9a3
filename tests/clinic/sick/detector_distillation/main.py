import torch

from models import Detector
from trainer import DistillationTrainer


def make_loader(batches, batch_size, num_classes=4):
    loader = []
    for _ in range(batches):
        images = torch.rand(batch_size, 3, 32, 32)
        targets = []
        for size in (8, 4):
            target = torch.zeros(batch_size, 5 + num_classes, size, size)
            ys, xs = torch.randint(0, size, (2, batch_size))
            rows = torch.arange(batch_size)
            target[rows, :4, ys, xs] = torch.rand(batch_size, 4)
            target[rows, 4, ys, xs] = 1.0
            target[rows, 5 + torch.randint(0, num_classes, (batch_size,)), ys, xs] = 1.0
            targets.append(target)
        loader.append((images, targets))
    return loader


if __name__ == "__main__":
    torch.manual_seed(11)
    trainer = DistillationTrainer(student=Detector(8), teacher=Detector(16))
    trainer.fit(make_loader(batches=4, batch_size=4), epochs=3)
