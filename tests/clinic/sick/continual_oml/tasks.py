import torch


class ClassStream:
    """Classes are Gaussian blobs; a trajectory shows them one after the other."""

    def __init__(self, inputs=10, classes=5, spread=0.6):
        self.classes = classes
        self.spread = spread
        self.centers = torch.randn(40, inputs)

    def draw(self, centers, label, count):
        x = centers[label] + self.spread * torch.randn(count, centers.shape[1])
        return x, torch.full((count,), label)

    def sample(self, shots=3):
        centers = self.centers[torch.randperm(len(self.centers))[: self.classes]]
        trajectory = [self.draw(centers, c, shots) for c in range(self.classes)]
        replay = [self.draw(centers, c, 6) for c in range(self.classes)]
        x_meta = torch.cat([x for x, _ in replay])
        y_meta = torch.cat([y for _, y in replay])
        return trajectory, x_meta, y_meta
