import torch
import torch.nn as nn
import torch.nn.functional as F


class UncertaintyWeight(nn.Module):
    """Homoscedastic weights: loss_i / (2 s_i^2) + log(s_i), with s_i learned."""

    def __init__(self, tasks):
        super().__init__()
        self.sigma = nn.Parameter(torch.full((len(tasks),), 0.5))  # <~ GS101
        self.tasks = list(tasks)

    def forward(self, losses):
        total = 0.0
        for index, task in enumerate(self.tasks):
            sigma = self.sigma[index]
            total = total + losses[task] / (2 * sigma**2) + torch.log(sigma)  # <- GS101
        return total


class SharedTrunk(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv2d(3, width, 3, stride=2, padding=1),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(2),
            nn.Flatten(),
        )
        self.age = nn.Linear(4 * width, 1)
        self.gender = nn.Linear(4 * width, 1)
        self.pose = nn.Linear(4 * width, 3)

    def forward(self, x):
        h = self.trunk(x)
        return {
            "age": self.age(h).squeeze(-1),
            "gender": self.gender(h).squeeze(-1),
            "pose": self.pose(h),
        }


TASK_LOSSES = {
    "age": F.smooth_l1_loss,
    "gender": F.binary_cross_entropy_with_logits,
    "pose": F.mse_loss,
}


def faces(count, size, generator):
    for _ in range(count):
        latent = torch.randn(size, 3, generator=generator)
        images = 0.1 * torch.randn(size, 3, 16, 16, generator=generator)
        images = images + latent[:, :, None, None]
        yield (
            images,
            {
                "age": 0.1 * latent[:, 0],
                "gender": (latent[:, 1] > 0).float(),
                "pose": 0.01 * torch.tanh(latent),
            },
        )


def main(steps=30, batch_size=16):
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(1)
    model = SharedTrunk()
    weighting = UncertaintyWeight(TASK_LOSSES)
    optimizer = torch.optim.Adam(
        [
            {"params": model.parameters(), "lr": 5e-3},
            {"params": weighting.parameters(), "lr": 5e-2},
        ]
    )
    for step, (images, targets) in enumerate(faces(steps, batch_size, generator)):
        outputs = model(images)
        losses = {k: loss(outputs[k], targets[k]) for k, loss in TASK_LOSSES.items()}
        total = weighting(losses)
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
        if step % 3 == 0:
            parts = " ".join(f"{k} {v.item():.4f}" for k, v in losses.items())
            print(f"step {step} total {total.item():.3f} {parts}")


if __name__ == "__main__":
    main()
