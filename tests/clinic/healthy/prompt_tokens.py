"""Prompt tuning with two added tokens; everything that the model knew stays as it was."""

import torch
import torch.nn.functional as F
from torch import nn

VOCAB, WIDTH = 20, 32


class TinyLM(nn.Module):
    def __init__(self, vocab=VOCAB, width=WIDTH, max_len=24):
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        self.position = nn.Embedding(max_len, width)
        layer = nn.TransformerEncoderLayer(
            width, 4, 64, dropout=0.1, batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(width)
        self.lm_head = nn.Linear(width, vocab, bias=False)
        nn.init.normal_(self.embed.weight, std=0.3)
        self.lm_head.weight = self.embed.weight

    def forward(self, ids=None, inputs_embeds=None):
        x = self.embed(ids) if inputs_embeds is None else inputs_embeds
        length = x.shape[1]
        mask = torch.full((length, length), float("-inf")).triu(1)
        x = x + self.position(torch.arange(length))
        return self.lm_head(self.norm(self.encoder(x, mask=mask)))

    def resize_tokens(self, extra):
        old = self.embed.weight.data
        new = torch.cat([old, old.mean(0, keepdim=True) + 0.02 * torch.randn(extra, WIDTH)])
        self.embed = nn.Embedding.from_pretrained(new, freeze=False)
        self.lm_head = nn.Linear(WIDTH, len(new), bias=False)
        self.lm_head.weight = self.embed.weight


class PromptModel(nn.Module):
    def __init__(self, model, length=4):
        super().__init__()
        self.model = model
        self.prompt = nn.Parameter(model.embed.weight[:length].detach().clone())

    def forward(self, ids):
        words = self.model.embed(ids)
        prompt = self.prompt.expand(len(ids), -1, -1)
        logits = self.model(inputs_embeds=torch.cat([prompt, words], dim=1))
        return logits[:, self.prompt.shape[0] :]

    def train(self, mode=True):
        super().train(mode)
        self.model.eval()
        return self


def sequences(stride, n=32, length=10):
    start = torch.randint(0, VOCAB, (n, 1))
    return (start + stride * torch.arange(length)) % VOCAB


def pretrain(model, steps=26):
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for step in range(steps):
        ids = sequences(1)
        loss = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step in (0, steps - 1):
            print(f"pretraining step {step} loss {loss.item():.3f}")


def keep_old_rows(weight, old):
    mask = torch.zeros(len(weight), 1)
    mask[old:] = 1.0
    return weight.register_hook(lambda grad: grad * mask)


def tune(wrapped, steps=20):
    trainable = [p for p in wrapped.parameters() if p.requires_grad]
    optimizer = torch.optim.Adam(trainable, lr=0.05)
    first, second = VOCAB, VOCAB + 1
    wrapped.train()
    for step in range(steps):
        ids = sequences(1)
        ids[:, 0] = first
        ids[:, 5] = second
        loss = F.cross_entropy(wrapped(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 6 == 0:
            print(f"tuning step {step} loss {loss.item():.3f}")


def main():
    torch.manual_seed(0)
    model = TinyLM()
    pretrain(model)
    model.resize_tokens(2)
    model.requires_grad_(False)
    model.embed.weight.requires_grad_(True)
    handle = keep_old_rows(model.embed.weight, VOCAB)
    before = model.embed.weight.detach().clone()
    tune(PromptModel(model))
    handle.remove()
    moved = (model.embed.weight.detach() - before).abs().amax(dim=1)
    print(f"old rows moved {moved[:VOCAB].max():.1e}, new rows {moved[VOCAB:].min():.2f}")


if __name__ == "__main__":
    main()
