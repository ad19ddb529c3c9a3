import torch
import torch.nn.functional as F

EPS = 1e-6


def boundary_loss(start_logits, end_logits, starts, ends):
    start = F.binary_cross_entropy_with_logits(start_logits, starts)
    end = F.binary_cross_entropy_with_logits(end_logits, ends)
    return start + end


def pair_consistency(pair_logits, start_idx, length, starts, valid):
    """A token starts an entity if at least one of its candidate pairs is on."""
    probs = pair_logits.sigmoid()
    log_off = torch.log1p(-probs.clamp(max=1.0 - EPS))  # <- GS102
    log_off = log_off.masked_fill(~valid, 0.0)
    none_on = torch.zeros(pair_logits.shape[0], length, dtype=log_off.dtype)
    none_on = none_on.scatter_add(1, start_idx, log_off)
    any_on = 1.0 - none_on.exp()
    return F.smooth_l1_loss(any_on.float(), starts.float())
