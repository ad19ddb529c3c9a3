import torch
import torch.nn.functional as F
from torch import nn


class IntentSlotLoss(nn.Module):
    """Weights the two tasks by what the model does not know about each of them."""

    def __init__(self, pad_tag=-100):
        super().__init__()
        self.pad_tag = pad_tag
        self.s_intent = nn.Parameter(torch.tensor(-1.2))
        self.s_slots = nn.Parameter(torch.tensor(-0.6))

    def forward(self, outputs, batch):
        intent_loss = F.cross_entropy(outputs["intent"], batch["intent"])
        slot_loss = F.cross_entropy(
            outputs["slots"].flatten(0, 1), batch["slots"].flatten(), ignore_index=self.pad_tag
        )
        loss = torch.exp(-self.s_intent) * intent_loss + torch.exp(-self.s_slots) * slot_loss
        loss = 0.5 * (loss + self.s_intent + self.s_slots)
        return loss, {"intent": intent_loss.item(), "slots": slot_loss.item()}
