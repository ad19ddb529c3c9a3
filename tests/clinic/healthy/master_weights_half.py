"""Half-precision weights with float32 masters, a loss scale by hand and a huge first gradient."""

import torch
import torch.nn.functional as F
from torch import nn


class Float32LayerNorm(nn.LayerNorm):
    def forward(self, x):
        return super().forward(x.float()).to(x.dtype)


class CharModel(nn.Module):
    def __init__(self, vocab=16, width=24, context=4):
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        self.mix = nn.Linear(width * context, 48)
        self.norm = Float32LayerNorm(48)
        self.out = nn.Linear(48, vocab)
        nn.init.normal_(self.out.weight, std=2.0)

    def forward(self, ids):
        x = self.embed(ids).flatten(1)
        return self.out(F.gelu(self.norm(self.mix(x))))


def to_half(model):
    model.to(torch.bfloat16)
    for module in model.modules():
        if isinstance(module, Float32LayerNorm):
            module.float()
    return model


class MasterOptimizer:
    def __init__(self, model, lr, loss_scale=1024.0, max_norm=1.0):
        self.params = [p for p in model.parameters() if p.requires_grad]
        self.masters = [p.detach().clone().float().requires_grad_(True) for p in self.params]
        self.inner = torch.optim.Adam(self.masters, lr=lr)
        self.loss_scale, self.max_norm = loss_scale, max_norm
        self.overflows = 0

    def zero_grad(self):
        for p in self.params:
            if p.grad is not None:
                p.grad.detach_()
                p.grad.zero_()

    def backward(self, loss):
        (loss.float() * self.loss_scale).backward()

    def step(self):
        for p, master in zip(self.params, self.masters, strict=True):
            master.grad = None if p.grad is None else p.grad.float() / self.loss_scale
        norm = nn.utils.clip_grad_norm_(self.masters, self.max_norm)
        if not torch.isfinite(norm):
            self.overflows += 1
            self.loss_scale /= 2
            return norm.item()
        self.inner.step()
        with torch.no_grad():
            for p, master in zip(self.params, self.masters, strict=True):
                p.copy_(master)
        return norm.item()


class Corpus:
    def __init__(self, vocab=16, context=4):
        self.vocab, self.context = vocab, context
        self.table = torch.randint(0, vocab, (vocab, 2))

    def batch(self, n):
        ids = torch.randint(0, self.vocab, (n, self.context))
        coin = (ids[:, 0] % 2).unsqueeze(1)
        target = self.table[ids[:, -1]].gather(1, coin).squeeze(1)
        return ids, target


def main():
    torch.manual_seed(0)
    corpus = Corpus()
    model = to_half(CharModel())
    optimizer = MasterOptimizer(model, lr=0.02)
    norms, losses = [], []
    for step in range(40):
        ids, target = corpus.batch(64)
        logits = model(ids)
        loss = F.cross_entropy(logits.float(), target)
        optimizer.zero_grad()
        optimizer.backward(loss)
        norms.append(optimizer.step())
        losses.append(loss.detach())
        if step % 13 == 0:
            print(f"step {step} loss {loss.item():.3f} norm {norms[-1]:.2f}")
    model.eval()
    with torch.no_grad():
        ids, target = corpus.batch(256)
        accuracy = (model(ids).argmax(dim=1) == target).float().mean().item()
    gap = max(
        (p.float() - m).abs().max().item()
        for p, m in zip(optimizer.params, optimizer.masters, strict=True)
    )
    print(f"first norm {norms[0]:.1f}, accuracy {accuracy:.2f}, rounding of weights {gap:.1e}")


if __name__ == "__main__":
    main()
