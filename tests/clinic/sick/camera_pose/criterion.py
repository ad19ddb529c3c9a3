import torch
import torch.nn as nn


class PoseCriterion(nn.Module):
    def __init__(self, beta=3.0):
        super().__init__()
        self.beta = beta

    def forward(self, trans, rotation, trans_gt, rotation_gt):
        translation_loss = torch.abs(trans - trans_gt).mean()  # <- GS503
        rotation = rotation.flatten(1)
        rotation_loss = (1 - (rotation * rotation_gt).sum(1).abs()).mean()
        return translation_loss + self.beta * rotation_loss, translation_loss, rotation_loss
