import torch
import torch.nn as nn
import torch.nn.functional as F


class DetectionLoss(nn.Module):
    def forward(self, predictions, targets):
        total = 0.0
        for pred, target in zip(predictions, targets):
            objectness = F.binary_cross_entropy_with_logits(pred[:, 4], target[:, 4])
            mask = target[:, 4] > 0.5
            box = (pred[:, :4] - target[:, :4]).abs().mean(1)[mask].mean()
            classes = F.binary_cross_entropy_with_logits(pred[:, 5:], target[:, 5:])
            total = total + objectness + box + 0.5 * classes
        return total


class ChannelWiseDistillation(nn.Module):
    """KL between the spatial distributions of every channel, per feature level."""

    def __init__(self, student_channels, teacher_channels, tau=2.0):
        super().__init__()
        self.tau = tau
        self.align = nn.ModuleList(  # <~ GS307
            nn.Conv2d(s, t, kernel_size=1) for s, t in zip(student_channels, teacher_channels)
        )

    def forward(self, student_maps, teacher_maps):
        loss = 0.0
        for align, s, t in zip(self.align, student_maps, teacher_maps):
            s = align(s).flatten(2) / self.tau
            t = t.flatten(2) / self.tau
            log_ratio = torch.log_softmax(t, -1) - torch.log_softmax(s, -1)
            loss = loss + (torch.softmax(t, -1) * log_ratio).sum(-1).mean() * self.tau**2
        return loss
