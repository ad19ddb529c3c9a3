"""Adapt a general encoder to a new domain with LoRA, by distilling a domain teacher."""

import copy

import torch
import torch.nn.functional as F

from model import Encoder, add_lora

CONFIG = {
    "seed": 9,
    "d_in": 12,
    "dim": 32,
    "n_classes": 5,
    "base": {"steps": 20, "lr": 3e-3},
    "teacher": {"steps": 30, "lr": 3e-3},
    "student": {"steps": 24, "lr": 3e-3, "micro_batches": 2, "temperature": 2.0},
    "batch_size": 48,
}


class Domain:
    def __init__(self, cfg, seed):
        self.gen = torch.Generator().manual_seed(seed)
        self.centers = torch.randn(3 * cfg["n_classes"], cfg["d_in"], generator=self.gen)
        self.n_classes = cfg["n_classes"]

    def batch(self, n):
        k = torch.randint(len(self.centers), (n,), generator=self.gen)
        x = self.centers[k] + 0.5 * torch.randn(n, self.centers.shape[1], generator=self.gen)
        return x, k % self.n_classes


def supervised(name, model, domain, steps, lr, batch_size):
    opt = torch.optim.Adam(model.parameters(), lr=lr)
    for step in range(1, steps + 1):
        x, y = domain.batch(batch_size)
        loss = F.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(f"{name}: loss {loss.item():.3f}")
    return model


def kd_loss(student_logits, teacher_logits, temperature):
    s = F.log_softmax(student_logits / temperature, dim=-1)
    t = F.softmax(teacher_logits / temperature, dim=-1)
    return F.kl_div(s, t, reduction="batchmean") * temperature**2


def distill(student, teacher, domain, cfg, batch_size):
    trainable = add_lora(student)
    opt = torch.optim.AdamW(trainable, lr=cfg["lr"], weight_decay=0.0)
    teacher.eval()
    student.train()
    for step in range(1, cfg["steps"] + 1):
        total = 0.0
        for _ in range(cfg["micro_batches"]):
            x, _ = domain.batch(batch_size)
            with torch.no_grad():
                target = teacher(x)
            loss = kd_loss(student(x), target, cfg["temperature"]) / cfg["micro_batches"]
            loss.backward()
            total += loss.item()
        opt.step()
        opt.zero_grad()
        if step % 6 == 0:
            print(f"distill {step:4d}  loss {total:.4f}")


def main(cfg=CONFIG):
    torch.manual_seed(cfg["seed"])
    general, special = Domain(cfg, 100), Domain(cfg, 200)
    shape = (cfg["d_in"], cfg["dim"], cfg["n_classes"])
    base = supervised("base", Encoder(*shape), general, batch_size=cfg["batch_size"], **cfg["base"])
    teacher = supervised(
        "teacher", Encoder(*shape), special, batch_size=cfg["batch_size"], **cfg["teacher"]
    )
    student = copy.deepcopy(base)
    student.use_checkpoint = True
    distill(student, teacher, special, cfg["student"], cfg["batch_size"])
    x, y = special.batch(512)
    student.eval()
    with torch.no_grad():
        print(f"student accuracy {(student(x).argmax(1) == y).float().mean().item():.3f}")


if __name__ == "__main__":
    main()
