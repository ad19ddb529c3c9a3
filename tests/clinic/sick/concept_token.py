"""Teaches one new word to a frozen text-to-image prior; all other words stay as they are."""

import torch
import torch.nn as nn
import torch.nn.functional as F

VOCAB, DIM, IMAGE, NEW = 64, 24, 36, 63


class TextEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.token_embedding = nn.Embedding(VOCAB, DIM)
        self.encoder = nn.TransformerEncoderLayer(DIM, 4, 2 * DIM, 0.0, batch_first=True)

    def forward(self, tokens):
        return self.encoder(self.token_embedding(tokens))[:, -1]


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(IMAGE + DIM + 1, 64),
            nn.SiLU(),
            nn.Linear(64, 64),
            nn.SiLU(),
            nn.Linear(64, IMAGE),
        )

    def forward(self, noisy, t, condition):
        return self.net(torch.cat([noisy, t, condition], dim=-1))


def freeze(*modules):
    for module in modules:
        module.eval()
        for param in module.parameters():
            param.requires_grad_(False)


def prompts(n: int):
    tokens = torch.randint(0, VOCAB - 1, (n, 5))
    tokens[:, 3] = NEW
    return tokens


def main():
    torch.manual_seed(77)
    text, denoiser = TextEncoder(), Denoiser()
    freeze(denoiser, text.encoder)
    embeddings = text.token_embedding.weight
    with torch.no_grad():
        embeddings[NEW] = embeddings[12]
    before = embeddings.detach().clone()
    images = torch.randn(1, IMAGE) + 0.2 * torch.randn(6, IMAGE)

    optimizer = torch.optim.AdamW(
        [embeddings],
        lr=2e-2,
        betas=(0.9, 0.99),
        weight_decay=1e-1,  # <- GS519
    )
    keep = torch.ones(VOCAB, 1)
    keep[NEW] = 0

    for step in range(30):
        picture = images[torch.randint(0, 6, (8,))]
        t = torch.rand(8, 1)
        noise = torch.randn_like(picture)
        noisy = (1 - t).sqrt() * picture + t.sqrt() * noise
        loss = F.mse_loss(denoiser(noisy, t, text(prompts(8))), noise)
        optimizer.zero_grad()
        loss.backward()
        embeddings.grad.masked_fill_(keep.bool(), 0.0)  # <~ GS519
        optimizer.step()
        if step % 10 == 9:
            moved = (embeddings[NEW] - before[NEW]).norm().item()
            print(f"step {step + 1}: loss {loss.item():.4f}  new word moved by {moved:.4f}")

    with torch.no_grad():
        reference = text(torch.randint(0, VOCAB - 1, (4, 5)))
    print(f"mean norm of an ordinary sentence: {reference.norm(dim=-1).mean():.4f}")


if __name__ == "__main__":
    main()
