import torch
from adapter import ActivatedLinear, AdapterScope
from torch import nn
from torch.utils.checkpoint import checkpoint


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.mix = nn.Linear(dim, dim)
        self.up = nn.Linear(dim, 2 * dim)
        self.down = nn.Linear(2 * dim, dim)

    def forward(self, x):
        h = self.norm(x)
        history = torch.cumsum(self.mix(h), dim=1) / torch.arange(1, x.size(1) + 1).view(1, -1, 1)
        return x + self.down(torch.tanh(self.up(h + history)))


class CausalModel(nn.Module):
    def __init__(self, vocab, dim, layers):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.blocks = nn.ModuleList(Block(dim) for _ in range(layers))
        self.head = nn.Linear(dim, vocab, bias=False)
        self.scope = None

    def adapt(self, rank):
        self.requires_grad_(False)
        for block in self.blocks:
            block.mix = ActivatedLinear(block.mix, rank)
            block.up = ActivatedLinear(block.up, rank)
        self.scope = AdapterScope(self)
        return self

    def forward(self, ids, offsets):
        self.scope.set(offsets)
        x = self.embed(ids)
        if self.training:
            x.requires_grad_(True)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=True) if self.training else block(x)  # <- GS303
        self.scope.set(None)  # <~ GS303
        return self.head(x)
