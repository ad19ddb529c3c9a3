"""Ground a frozen language model to images with a retrieval token."""

from dataclasses import dataclass, field

import torch
from grounding import GroundedLM
from lm import CausalLM


@dataclass
class Config:
    vocab: int = 60
    image_dim: int = 12
    shared_dim: int = 16
    freeze_lm: bool = True
    lr: float = 3e-3
    steps: int = 12
    batch: int = 16
    pretrained: dict = field(default_factory=dict)


def batches(cfg):
    topics = torch.randn(8, cfg.image_dim)
    for _ in range(cfg.steps):
        topic = torch.randint(0, 8, (cfg.batch,))
        images = topics[topic] + 0.1 * torch.randn(cfg.batch, cfg.image_dim)
        captions = (topic.unsqueeze(1) * 7 + torch.randint(0, 7, (cfg.batch, 10))) % cfg.vocab
        yield images, captions


def main():
    torch.manual_seed(21)
    cfg = Config()
    cfg.pretrained = CausalLM(vocab=cfg.vocab).state_dict()
    model = GroundedLM(cfg)
    optimizer = torch.optim.AdamW(
        [p for p in model.parameters() if p.requires_grad], lr=cfg.lr, weight_decay=0.0
    )
    warmup = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.2, total_iters=4)
    model.train()
    for step, (images, captions) in enumerate(batches(cfg)):
        cap_loss, ret_loss = model(images, captions)
        loss = cap_loss + ret_loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        warmup.step()
        if step % 4 == 0:
            print(f"step {step}: caption {cap_loss.item():.3f} retrieval {ret_loss.item():.3f}")


if __name__ == "__main__":
    main()
