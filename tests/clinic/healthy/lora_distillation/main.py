import torch
import torch.nn as nn
import torch.nn.functional as F

from lora import inject, merge_all

CONFIG = {
    "pretrain_steps": 40,
    "adapt_steps": 40,
    "batch_size": 64,
    "temperature": 2.0,
    "hard_weight": 0.3,
    "rank": 4,
    "seed": 11,
}


class MLP(nn.Module):
    def __init__(self, width, in_dim=16, n_classes=4):
        super().__init__()
        self.fc1 = nn.Linear(in_dim, width)
        self.fc2 = nn.Linear(width, width)
        self.head = nn.Linear(width, n_classes)

    def forward(self, x):
        return self.head(F.gelu(self.fc2(F.gelu(self.fc1(x)))))


def make_task(rotation):
    g = torch.Generator().manual_seed(3)
    w = torch.randn(16, 4, generator=g)
    r, _ = torch.linalg.qr(torch.eye(16) + rotation * torch.randn(16, 16, generator=g))

    def sample(n):
        x = torch.randn(n, 16)
        return x, (torch.tanh(x @ r @ w) + 0.05 * torch.randn(n, 4)).argmax(1)

    return sample


def pretrain(model, sample, steps, batch_size):
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(steps):
        x, y = sample(batch_size)
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def distill_loss(student_logits, teacher_logits, labels, temperature, hard_weight):
    soft = (
        F.kl_div(
            F.log_softmax(student_logits / temperature, dim=1),
            F.softmax(teacher_logits / temperature, dim=1),
            reduction="batchmean",
        )
        * temperature**2
    )
    return hard_weight * F.cross_entropy(student_logits, labels) + (1 - hard_weight) * soft


def main(cfg):
    torch.manual_seed(cfg["seed"])
    old_task, new_task = make_task(0.0), make_task(0.15)
    teacher, student = MLP(96), MLP(32)
    steps, batch_size = cfg["pretrain_steps"], cfg["batch_size"]
    print(f"teacher on the new task: loss {pretrain(teacher, new_task, steps, batch_size):.4f}")
    print(f"student on the old task: loss {pretrain(student, old_task, steps, batch_size):.4f}")
    teacher.eval().requires_grad_(False)
    trainable = inject(student, rank=cfg["rank"])
    optimizer = torch.optim.AdamW(trainable, lr=5e-3, weight_decay=0.0)
    for step in range(1, cfg["adapt_steps"] + 1):
        x, y = new_task(cfg["batch_size"])
        with torch.no_grad():
            teacher_logits = teacher(x)
        loss = distill_loss(student(x), teacher_logits, y, cfg["temperature"], cfg["hard_weight"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0 or step == 1:
            print(f"adapt {step:4d}  loss {loss.item():.4f}")
    x, y = new_task(1000)
    with torch.no_grad():
        before = student(x)
        after = merge_all(student)(x)
    print(
        f"merged accuracy {(after.argmax(1) == y).float().mean():.3f}  "
        f"drift {(before - after).abs().max():.1e}"
    )


if __name__ == "__main__":
    main(CONFIG)
