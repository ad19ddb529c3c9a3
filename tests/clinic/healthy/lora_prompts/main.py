"""Parameter-efficient tuning: low rank adapters and a gated soft prompt on a frozen model."""

import torch
import torch.nn.functional as F
from adapters import attach
from lm import PromptedLM


def batch(count=12, length=14):
    start = torch.randint(1, 48, (count, 1))
    tokens = (start + 3 * torch.arange(length)) % 47 + 1
    lengths = torch.randint(8, length + 1, (count, 1))
    pad = torch.arange(length) >= lengths
    labels = tokens.masked_fill(pad, -100)
    return tokens.masked_fill(pad, 0), labels


def main(steps=18):
    torch.manual_seed(12)
    model = attach(PromptedLM(), {"q_proj", "v_proj", "fc1"}, rank=4)
    trained = {n: p for n, p in model.named_parameters() if p.requires_grad}
    count = sum(p.numel() for p in trained.values())
    total = sum(p.numel() for p in model.parameters())
    print(f"training {count} of {total} parameters")
    optimizer = torch.optim.AdamW(
        [
            {"params": [p for n, p in trained.items() if "prompt" in n], "lr": 2e-2},
            {"params": [p for n, p in trained.items() if "prompt" not in n], "lr": 5e-3},
        ],
        weight_decay=0.0,
    )
    model.train()
    for step in range(steps):
        tokens, labels = batch()
        logits = model(tokens)
        loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained.values(), 1.0)
        optimizer.step()
        if step % 6 == 0:
            print(f"step {step} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
