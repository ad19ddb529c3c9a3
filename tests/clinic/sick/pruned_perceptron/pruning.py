import torch


class MagnitudePruner:
    """Removes the smallest weights of every matrix and keeps them out while the net recovers."""

    def __init__(self, model, sparsity: float):
        self.model = model
        self.sparsity = sparsity
        self.masks = {}

    @torch.no_grad()
    def prune(self):
        for name, param in self.model.named_parameters():
            if param.dim() < 2:
                continue
            cut = param.abs().flatten().quantile(self.sparsity)
            self.masks[name] = (param.abs() > cut).float()
            param.mul_(self.masks[name])  # <~ GS519

    def mask_gradients(self):
        for name, param in self.model.named_parameters():
            if name in self.masks:
                param.grad.mul_(self.masks[name])  # <- GS519

    @torch.no_grad()
    def density(self) -> float:
        kept = sum(int((p != 0).sum()) for n, p in self.model.named_parameters() if n in self.masks)
        total = sum(m.numel() for m in self.masks.values())
        return kept / total
