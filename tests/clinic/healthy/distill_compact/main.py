"""Train a teacher, then distil it into a small student with hints."""

import torch
import torch.nn.functional as F
from nets import ConfidenceWeight, ConvNet, Hint


def images(count, classes=5, size=12):
    y = torch.randint(0, classes, (count,))
    x = 0.4 * torch.randn(count, 1, size, size)
    cols = torch.arange(size).view(1, 1, 1, -1)
    return x + (cols % (y.view(-1, 1, 1, 1) + 2) == 0).float(), y


def fit_teacher(teacher, x, y, steps=12):
    optimizer = torch.optim.Adam(teacher.parameters(), lr=1e-2)
    for _ in range(steps):
        pick = torch.randint(0, len(y), (48,))
        loss = F.cross_entropy(teacher(x[pick])[0], y[pick])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"teacher loss {loss.item():.4f}")
    return teacher.eval()


def distil(teacher, student, x, y, steps=20, temperature=3.0, alpha=0.7):
    for p in teacher.parameters():
        p.requires_grad = False
    hint, weigh = Hint(4, 12), ConfidenceWeight()
    optimizer = torch.optim.Adam([*student.parameters(), *hint.parameters()], lr=1e-2)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for step in range(steps):
        pick = torch.randint(0, len(y), (48,))
        with torch.inference_mode():
            t_logits, t_mid = teacher(x[pick])
        t_logits, t_mid = t_logits.clone(), t_mid.clone()
        s_logits, s_mid = student(x[pick])
        soft = F.kl_div(
            F.log_softmax(s_logits / temperature, 1),
            F.softmax(t_logits / temperature, 1),
            reduction="none",
        ).sum(1)
        soft = (weigh(t_logits) * soft).mean() * temperature**2
        hard = F.cross_entropy(s_logits, y[pick])
        hint_factor = max(0.0, 1.0 - 2.0 * step / steps)
        loss = alpha * soft + (1.0 - alpha) * hard + hint_factor * hint(s_mid, t_mid)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        if step % 5 == 4:
            print(f"step {step + 1} soft {soft.item():.4f} hard {hard.item():.4f}")


if __name__ == "__main__":
    torch.manual_seed(14)
    x, y = images(256)
    distil(fit_teacher(ConvNet(12), x, y), ConvNet(4), x, y)
