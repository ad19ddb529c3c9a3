import torch
import torch.nn as nn
import torch.nn.functional as F


class Configs:
    epochs = 3
    batch_size = 16
    temperature = 5.0
    soft_targets_weight = 25.0
    label_loss_weight = 0.5
    learning_rate = 1e-2
    classes = 5

    def __init__(self):
        self.large = LargeModel(self.classes)
        self.model = SmallModel(self.classes)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=self.learning_rate)
        self.kl_div_loss = nn.KLDivLoss(reduction="batchmean", log_target=True)
        self.loss_func = nn.CrossEntropyLoss()

    def run(self, train_batches, valid_batches):
        self.large.eval()
        for epoch in range(self.epochs):
            self.model.train()
            tracker = {"soft_loss": 0.0, "label_loss": 0.0}
            for data, target in train_batches:
                for name, value in self.step(data, target).items():
                    tracker[name] += value / len(train_batches)
            print(epoch, {k: round(v, 5) for k, v in tracker.items()}, self.valid(valid_batches))

    def step(self, data, target):
        with torch.no_grad():
            large_logits = self.large(data)
        output = self.model(data)

        soft_targets = F.log_softmax(large_logits / self.temperature, dim=-1)
        soft_prob = F.log_softmax(large_logits / self.temperature, dim=-1)  # <- GS316
        soft_loss = self.kl_div_loss(soft_prob, soft_targets)
        label_loss = self.loss_func(output, target)
        loss = self.soft_targets_weight * soft_loss + self.label_loss_weight * label_loss

        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return {"soft_loss": soft_loss.item(), "label_loss": label_loss.item()}

    @torch.no_grad()
    def valid(self, batches):
        self.model.eval()
        agree = [(self.model(x).argmax(-1) == self.large(x).argmax(-1)).float() for x, _ in batches]
        return f"agreement {torch.cat(agree).mean().item():.3f}"


class LargeModel(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(3, 24, 3, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(2),
            nn.Flatten(),
            nn.Linear(96, classes),
        )

    def forward(self, x):
        return self.net(x) * 8


class SmallModel(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.conv = nn.Conv2d(3, 6, 3, padding=1)
        self.norm = nn.GroupNorm(2, 6)
        self.logits = nn.Linear(6, classes)

    def forward(self, x):
        x = F.relu(self.norm(self.conv(x)))
        return self.logits(x.mean((2, 3)))


def cifar_like(count, configs, generator):
    prototypes = torch.randn(configs.classes, 3, 8, 8, generator=generator)
    batches = []
    for _ in range(count):
        y = torch.randint(0, configs.classes, (configs.batch_size,), generator=generator)
        noise = torch.randn(configs.batch_size, 3, 8, 8, generator=generator)
        batches.append((prototypes[y] + 0.6 * noise, y))
    return batches


if __name__ == "__main__":
    torch.manual_seed(14)
    configs = Configs()
    batches = cifar_like(8, configs, torch.Generator().manual_seed(15))
    configs.run(batches[:6], batches[6:])
