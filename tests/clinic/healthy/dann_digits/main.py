import math

import torch
import torch.nn.functional as F

from layers import DANN

CFG = dict(seed=1, in_dim=20, hidden=32, classes=4, batch=64, steps=60, lr=0.02, hold=20)


def reversal_strength(step, cfg):
    """0 while the features settle, then the usual sigmoid ramp to 1."""
    p = max(0, step - cfg["hold"]) / (cfg["steps"] - cfg["hold"])
    return 2.0 / (1.0 + math.exp(-10.0 * p)) - 1.0


def sample(n, centres, shift, gen):
    y = torch.randint(len(centres), (n,), generator=gen)
    x = centres[y] + 0.8 * torch.randn(n, centres.shape[1], generator=gen) + shift
    return x, y


def main(cfg):
    torch.manual_seed(cfg["seed"])
    gen = torch.Generator().manual_seed(cfg["seed"])
    centres = torch.randn(cfg["classes"], cfg["in_dim"], generator=gen)
    shift = 0.7 * torch.randn(cfg["in_dim"], generator=gen)
    model = DANN(cfg["in_dim"], cfg["hidden"], cfg["classes"])
    optimizer = torch.optim.SGD(model.parameters(), lr=cfg["lr"], momentum=0.9)
    for step in range(cfg["steps"]):
        lambd = reversal_strength(step, cfg)
        xs, ys = sample(cfg["batch"], centres, 0.0, gen)
        xt, _ = sample(cfg["batch"], centres, shift, gen)
        cls_s, dom_s = model(xs, lambd)
        _, dom_t = model(xt, lambd)
        cls_loss = F.cross_entropy(cls_s, ys)
        dom_loss = F.binary_cross_entropy_with_logits(
            torch.cat([dom_s, dom_t]), torch.cat([torch.zeros_like(dom_s), torch.ones_like(dom_t)])
        )
        loss = cls_loss + dom_loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0 or step == cfg["steps"] - 1:
            with torch.no_grad():
                xv, yv = sample(512, centres, shift, gen)
                acc = (model(xv, 0.0)[0].argmax(-1) == yv).float().mean().item()
            print(
                f"step {step:3d}  lambda {lambd:.2f}  cls {cls_loss.item():.4f}  "
                f"dom {dom_loss.item():.4f}  target acc {acc:.3f}"
            )


if __name__ == "__main__":
    main(CFG)
