"""Soft prompts for a small frozen classifier, all of it stored in half precision."""

import torch
import torch.nn.functional as F
from torch import nn


class PromptedClassifier(nn.Module):
    def __init__(self, prompts=4, dim=16, classes=3):
        super().__init__()
        self.prompt = nn.Parameter(0.02 * torch.randn(prompts, dim))
        self.scorer = nn.Linear(dim, classes)
        self.scorer.requires_grad_(False)

    def forward(self, features):
        weights = torch.softmax(features @ self.prompt.T, dim=-1)
        return self.scorer(features + weights @ self.prompt)


def main():
    torch.manual_seed(3)
    model = PromptedClassifier().half()
    learned = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.RMSprop(learned, lr=1e-3)  # <- GS106
    for _ in range(6):
        features = torch.randn(32, 16).half()
        labels = (features[:, 0] > 0).long()
        loss = F.cross_entropy(model(features).float(), labels) / 32
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"{loss.item():.4f}")


if __name__ == "__main__":
    main()
