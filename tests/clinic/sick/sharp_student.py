"""Distils a language model with a choice of divergences at a low temperature."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class DistillConfig:
    divergence: str = "reverse_kl"
    temperature: float = 0.05
    alpha: float = 0.5
    vocabulary: int = 24
    width: int = 24
    length: int = 10
    batch: int = 8
    steps: int = 8
    lr: float = 3e-3


class TinyLm(nn.Module):
    def __init__(self, vocabulary, width, scale=1.0):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.rnn = nn.GRU(width, width, batch_first=True)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary)
        self.scale = scale

    def forward(self, tokens):
        hidden, _ = self.rnn(self.embed(tokens))
        return self.scale * self.head(self.norm(hidden))


class DistillTrainer:
    def __init__(self, config, student, teacher):
        self.config, self.student = config, student
        self.teacher = teacher.eval().requires_grad_(False)
        self.optimizer = torch.optim.AdamW(student.parameters(), lr=config.lr)

    def distill_term(self, student_logits, teacher_logits, mask):
        student_logits = student_logits[:, :-1] / self.config.temperature
        teacher_logits = teacher_logits[:, :-1] / self.config.temperature
        if self.config.divergence == "forward_kl":
            teacher = F.softmax(teacher_logits, dim=-1)
            term = F.kl_div(F.log_softmax(student_logits, -1), teacher, reduction="none")
        else:
            student = F.softmax(student_logits, dim=-1)  # <~ GS102
            teacher_log = F.log_softmax(teacher_logits, dim=-1)
            term = F.kl_div(teacher_log, student, reduction="none")  # <- GS102
        per_token = term.sum(-1) * mask
        return per_token.sum() / mask.sum() * self.config.temperature**2

    def step(self, tokens, mask):
        logits = self.student(tokens)
        with torch.no_grad():
            teacher_logits = self.teacher(tokens)
        flat = logits[:, :-1].flatten(0, 1)
        ce = F.cross_entropy(flat, tokens[:, 1:].flatten(), reduction="none")
        ce = (ce * mask.flatten()).sum() / mask.sum()
        term = self.distill_term(logits, teacher_logits, mask)
        loss = self.config.alpha * term + (1 - self.config.alpha) * ce
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item(), term.item()


def main():
    config = DistillConfig()
    torch.manual_seed(0)
    student = TinyLm(config.vocabulary, config.width)
    teacher = TinyLm(config.vocabulary, config.width, scale=2.0)
    nn.init.normal_(student.head.weight, std=0.6)
    trainer = DistillTrainer(config, student, teacher)
    for step in range(config.steps):
        tokens = torch.randint(0, config.vocabulary, (config.batch, config.length))
        lengths = torch.randint(4, config.length, (config.batch, 1))
        mask = (torch.arange(config.length - 1)[None] < lengths).float()
        loss, term = trainer.step(tokens, mask)
        print(f"step {step} loss {loss:.4f} divergence {term:.5f}")


if __name__ == "__main__":
    main()
