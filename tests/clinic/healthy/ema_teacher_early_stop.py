"""Semi-supervised: EMA teacher, metric accumulation, early stopping, best checkpoint kept."""

import copy

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class EMA:
    def __init__(self, model, decay=0.9):
        self.module = copy.deepcopy(model).eval()
        self.decay = decay
        for p in self.module.parameters():
            p.requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        for e, p in zip(
            self.module.state_dict().values(), model.state_dict().values(), strict=False
        ):
            if e.dtype.is_floating_point:
                e.mul_(self.decay).add_(p, alpha=1 - self.decay)
            else:
                e.copy_(p)


def evaluate(model, data):
    model.eval()
    total, correct = 0.0, 0
    with torch.no_grad():
        for x, y in data:
            out = model(x)
            total += F.cross_entropy(out, y, reduction="sum").item()
            correct += (out.argmax(1) == y).sum().item()
    model.train()
    n = sum(len(y) for _, y in data)
    return total / n, correct / n


student = nn.Sequential(
    nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 3)
)
ema = EMA(student)
opt = torch.optim.AdamW(student.parameters(), lr=1e-2)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 6)
train = [(torch.randn(16, 6), torch.randint(0, 3, (16,)), torch.randn(24, 6)) for _ in range(3)]
valid = [(torch.randn(16, 6), torch.randint(0, 3, (16,))) for _ in range(2)]
best, best_state, patience, history = float("inf"), None, 0, []
for epoch in range(4):
    for x, y, u in train:
        with torch.no_grad():
            pseudo = ema.module(u).softmax(1)
            confident, label = pseudo.max(1)
            mask = (confident > 0.34).float()
        supervised = F.cross_entropy(student(x), y)
        consistency = (
            F.cross_entropy(student(u + 0.1 * torch.randn_like(u)), label, reduction="none") * mask
        ).mean()
        loss = supervised + 0.5 * consistency
        opt.zero_grad(set_to_none=True)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(student.parameters(), 10.0)
        opt.step()
        ema.update(student)
        history.append({"loss": loss.item(), "norm": float(norm), "mask": mask.mean().item()})
    sched.step()
    val, acc = evaluate(ema.module, valid)
    if val < best:
        best, best_state, patience = val, copy.deepcopy(student.state_dict()), 0
    else:
        patience += 1
        if patience >= 2:
            break
    print(epoch, val, acc)
student.load_state_dict(best_state)
