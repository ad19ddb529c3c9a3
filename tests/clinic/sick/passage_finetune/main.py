from dataclasses import dataclass

import torch
from checkpoint import load_state, save_state
from model import DualEncoder, in_batch_loss


@dataclass
class Config:
    vocab: int = 200
    dim: int = 24
    lr: float = 5e-3
    warmup: int = 2
    total: int = 12
    batch: int = 16


def build(cfg: Config):
    model = DualEncoder(cfg.vocab, cfg.dim)
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr)

    def factor(step: int) -> float:
        if step < cfg.warmup:
            return (step + 1) / cfg.warmup
        return max(0.0, (cfg.total - step) / (cfg.total - cfg.warmup))

    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
    return model, optimizer, scheduler


def make_pairs(cfg: Config, n: int, offset: int):
    topics = torch.randint(0, 20, (n, 1))
    words = topics * 10 + torch.randint(0, 10, (n, 12))
    words = (words + offset) % cfg.vocab
    return words[:, :5], words[:, 5:]


def run(cfg: Config, parts, questions, passages, name: str) -> int:
    model, optimizer, scheduler = parts
    done = 0
    for start in range(0, len(questions), cfg.batch):
        q, p = questions[start : start + cfg.batch], passages[start : start + cfg.batch]
        loss = in_batch_loss(model(q, p))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 2.0)
        optimizer.step()
        scheduler.step()
        done += 1
        if done % 4 == 0:
            print(f"{name} step {done}: loss {loss.item():.4f}")
    return done


def main():
    torch.manual_seed(5)
    cfg = Config()
    parts = build(cfg)
    questions, passages = make_pairs(cfg, cfg.total * cfg.batch, offset=0)
    steps = run(cfg, parts, questions, passages, "pretrain")
    blob = save_state(*parts, steps)

    parts = build(cfg)
    start = load_state(blob, *parts)
    print(f"continuing from a checkpoint of step {start} on our own questions")
    questions, passages = make_pairs(cfg, cfg.total * cfg.batch, offset=7)
    run(cfg, parts, questions, passages, "finetune")
    with torch.no_grad():
        print(f"own questions: {in_batch_loss(parts[0](questions[:16], passages[:16])).item():.4f}")


if __name__ == "__main__":
    main()
