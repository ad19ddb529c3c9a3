import torch
import torch.nn as nn
import torch.nn.functional as F
from data import loader


class ClozeModel(nn.Module):
    """Fills the gap of a pattern; each label has one word that speaks for it."""

    def __init__(self, cfg):
        super().__init__()
        self.words = nn.Embedding(cfg.vocab, cfg.dim)
        self.mixer = nn.TransformerEncoderLayer(cfg.dim, 2, 2 * cfg.dim, 0.0, batch_first=True)
        self.verbalisers = nn.Parameter(0.1 * torch.randn(cfg.labels, cfg.dim))

    def forward(self, tokens):
        return self.mixer(self.words(tokens)).mean(1) @ self.verbalisers.t()


class ClozeWrapper:
    def __init__(self, cfg):
        self.cfg = cfg
        self.model = ClozeModel(cfg)

    def train(self, tokens, labels):
        cfg = self.cfg
        optimizer = torch.optim.AdamW(self.model.parameters(), lr=cfg.lr)
        scheduler = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda s: min(1.0, (s + 1) / (cfg.warmup + 1))
        )
        self.model.zero_grad()
        for epoch in range(cfg.epochs):
            batches = loader(tokens, labels, cfg.batch_size)
            epoch_loss = 0.0
            for step, (bx, by) in enumerate(batches):
                loss = F.cross_entropy(self.model(bx), by)
                epoch_loss += loss.item() / len(batches)
                (loss / cfg.gradient_accumulation_steps).backward()
                if (step + 1) % cfg.gradient_accumulation_steps == 0:  # <- GS000
                    nn.utils.clip_grad_norm_(self.model.parameters(), cfg.max_grad_norm)
                    optimizer.step()
                    scheduler.step()
                    self.model.zero_grad()
            print(f"epoch {epoch}: loss {epoch_loss:.4f}")

    def evaluate(self, tokens, labels) -> float:
        self.model.eval()
        with torch.no_grad():
            hits = (self.model(tokens).argmax(1) == labels).float().mean().item()
        self.model.train()
        return hits
