"""A tagger whose blocks forget their activations and run again, with the same random numbers."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class RunAgain(torch.autograd.Function):
    @staticmethod
    def forward(ctx, block, x, *params):
        ctx.block, ctx.params = block, params
        ctx.state = torch.get_rng_state()
        ctx.save_for_backward(x)
        with torch.no_grad():
            return block(x)

    @staticmethod
    def backward(ctx, grad):
        x = ctx.saved_tensors[0].detach().requires_grad_(True)
        later = torch.get_rng_state()
        torch.set_rng_state(ctx.state)
        with torch.enable_grad():
            y = ctx.block(x)
        torch.set_rng_state(later)
        return (None, *torch.autograd.grad(y, (x, *ctx.params), grad))


class Block(nn.Module):
    def __init__(self, dim: int, dropout: float):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.mix = nn.Conv1d(dim, dim, 3, padding=1, groups=4)
        self.drop = nn.Dropout(dropout)
        self.out = nn.Linear(dim, dim)

    def forward(self, x):
        h = self.mix(self.norm(x).transpose(1, 2)).transpose(1, 2)
        return x + self.out(self.drop(F.gelu(h)))


class Tagger(nn.Module):
    def __init__(self, vocab=80, dim=24, tags=5, depth=3):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.blocks = nn.ModuleList(Block(dim, 0.2) for _ in range(depth))
        self.head = nn.Linear(dim, tags)

    def forward(self, tokens):
        h = self.embed(tokens)
        for block in self.blocks:
            if self.training:
                h = RunAgain.apply(block, h, *block.parameters())
            else:
                h = block(h)
        return self.head(h)


def sentences(n: int, length: int = 14):
    tokens = torch.randint(0, 80, (n, length))
    return tokens, (tokens + tokens.roll(1, dims=1) % 2) % 5


def main():
    torch.manual_seed(29)
    tokens, tags = sentences(256)
    val_tokens, val_tags = sentences(64)
    model = Tagger()
    optimizer = torch.optim.AdamW(model.parameters(), lr=8e-3)
    for step in range(24):
        pick = torch.randint(0, 256, (32,))
        loss = F.cross_entropy(model(tokens[pick]).flatten(0, 1), tags[pick].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 8 == 7:
            model.eval()
            with torch.no_grad():
                right = (model(val_tokens).argmax(-1) == val_tags).float().mean().item()
            model.train()
            print(f"step {step + 1}: loss {loss.item():.4f}  accuracy {right:.3f}")


if __name__ == "__main__":
    main()
