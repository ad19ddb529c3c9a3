import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

CFG = {"vocab": 60, "seq": 10, "classes": 5, "temperature": 4.0, "alpha": 0.9, "lr": 3e-3}


class BagEncoder(nn.Module):
    def __init__(self, vocab, dim, classes):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, dim), nn.GELU(), nn.Linear(dim, classes))

    def forward(self, tokens):
        return self.mlp(self.emb(tokens).mean(1))


def make_data(cfg, n=256):
    y = torch.randint(0, cfg["classes"], (n,))
    noise = torch.randint(0, cfg["vocab"], (n, cfg["seq"]))
    topical = y.unsqueeze(1) * 10 + torch.randint(0, 10, (n, cfg["seq"]))
    tokens = torch.where(torch.rand(n, cfg["seq"]) < 0.6, topical, noise)
    return DataLoader(TensorDataset(tokens, y), batch_size=64, shuffle=True)


def distillation_loss(student_logits, teacher_logits, labels, cfg):
    t = cfg["temperature"]
    soft_student = F.softmax(student_logits / t, dim=1)  # <~ GS512
    soft_teacher = F.softmax(teacher_logits / t, dim=1)
    kd = F.kl_div(soft_student, soft_teacher, reduction="batchmean") * t * t  # <- GS512
    ce = F.cross_entropy(student_logits, labels)
    return cfg["alpha"] * kd + (1 - cfg["alpha"]) * ce, kd


def fit_teacher(teacher, loader, epochs=4):
    opt = torch.optim.Adam(teacher.parameters(), lr=1e-2)
    for _ in range(epochs):
        for tokens, y in loader:
            opt.zero_grad()
            F.cross_entropy(teacher(tokens), y).backward()
            opt.step()


def fit_student(student, teacher, loader, cfg, epochs=5):
    teacher.eval()
    opt = torch.optim.Adam(student.parameters(), lr=cfg["lr"])
    for epoch in range(epochs):
        hits = seen = 0
        for tokens, y in loader:
            with torch.no_grad():
                t_logits = teacher(tokens)
            s_logits = student(tokens)
            loss, kd = distillation_loss(s_logits, t_logits, y, cfg)
            opt.zero_grad()
            loss.backward()
            opt.step()
            hits += (s_logits.argmax(1) == t_logits.argmax(1)).sum().item()
            seen += len(y)
        print(f"epoch {epoch} loss {loss.item():.4f} kd {kd.item():.4f} agree {hits / seen:.3f}")


def main():
    torch.manual_seed(8)
    loader = make_data(CFG)
    teacher = BagEncoder(CFG["vocab"], 48, CFG["classes"])
    student = BagEncoder(CFG["vocab"], 12, CFG["classes"])
    fit_teacher(teacher, loader)
    fit_student(student, teacher, loader, CFG)


if __name__ == "__main__":
    main()
