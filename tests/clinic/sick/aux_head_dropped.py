"""Temporal pyramid network: aux_head_cfg is set, and makes no difference."""

import torch
from torch import nn

torch.manual_seed(0)


class AuxHead(nn.Module):
    def __init__(self, c, classes):
        super().__init__()
        self.fc = nn.Linear(c, classes)  # <- GS301

    def forward(self, x, target):
        return {
            "loss_aux": 0.5 * nn.functional.cross_entropy(self.fc(x.mean(-1)), target)  # <~ GS301
        }


class TPN(nn.Module):
    def __init__(self, c, classes, aux=True):
        super().__init__()
        self.pyramid = nn.Conv1d(c, c, 3, padding=1)
        self.aux_head = AuxHead(c, classes) if aux else None

    def forward(self, x, target):
        loss_aux = self.aux_head(x, target) if self.aux_head is not None else {}
        return torch.relu(self.pyramid(x)), loss_aux


class Recognizer2D(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Conv1d(3, 8, 3)
        self.neck = TPN(8, 5)
        self.cls_head = nn.Linear(8, 5)

    def forward_train(self, imgs, labels):
        losses = {}
        x = self.backbone(imgs)
        x, _ = self.neck(x, labels.squeeze())  # <~ GS301
        losses["loss_cls"] = nn.functional.cross_entropy(
            self.cls_head(x.mean(-1)), labels.squeeze()
        )
        return losses

    def train_step(self, batch, optimizer):
        losses = self.forward_train(**batch)
        total = sum(v for k, v in losses.items() if "loss" in k)
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
        return {k: v.item() for k, v in losses.items()}


model = Recognizer2D()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(3):
    print(
        model.train_step(
            {"imgs": torch.randn(6, 3, 12), "labels": torch.randint(0, 5, (6, 1))}, optimizer
        )
    )
