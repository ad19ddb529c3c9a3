import torch

from heads import DraftHeads, draft_loss
from lm import TinyLM, pretrain, sample_sequences

CONFIG = dict(vocab=31, hidden=48, num_heads=4, pretrain_steps=10, steps=10, batch=16, lr=2e-3)


def accuracy(model, ids):
    with torch.no_grad():
        logits = model(ids)
    acc = []
    for k, head in enumerate(logits):
        shift = k + 2
        acc.append((head[:, 2:-shift].argmax(-1) == ids[:, 2 + shift :]).float().mean().item())
    return acc


def main(cfg=CONFIG):
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(1)
    base = pretrain(TinyLM(cfg["vocab"], cfg["hidden"]), cfg["vocab"], cfg["pretrain_steps"], g)
    model = DraftHeads(base, cfg["hidden"], cfg["vocab"], cfg["num_heads"])
    params = model.trainable()
    print("trainable tensors:", sum(p.numel() for p in params))
    optimizer = torch.optim.AdamW(params, lr=cfg["lr"], weight_decay=0.0)
    for step in range(cfg["steps"]):
        ids = sample_sequences(cfg["batch"], 20, cfg["vocab"], g)
        loss, parts = draft_loss(model(ids), ids)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 40 == 0 or step == cfg["steps"] - 1:
            print(f"step {step:4d}  " + "  ".join(f"head{k} {p:.3f}" for k, p in enumerate(parts)))
    test = sample_sequences(256, 20, cfg["vocab"], torch.Generator().manual_seed(7))
    print("accuracy", [f"{a:.3f}" for a in accuracy(model, test)])


if __name__ == "__main__":
    main()
