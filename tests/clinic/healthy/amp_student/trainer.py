import torch
import torch.nn.functional as F
from torch import nn


def distill_loss(student_logits, teacher_logits, labels, temperature, alpha):
    soft = (
        F.kl_div(
            (student_logits / temperature).log_softmax(-1),
            (teacher_logits / temperature).log_softmax(-1),
            log_target=True,
            reduction="batchmean",
        )
        * temperature**2
    )
    return alpha * soft + (1 - alpha) * F.cross_entropy(student_logits, labels)


class DistillTrainer:
    def __init__(self, teacher, student, cfg):
        self.teacher, self.student, self.cfg = teacher.eval(), student, cfg
        self.teacher.requires_grad_(False)
        self.optimizer = torch.optim.SGD(student.parameters(), lr=cfg["lr"], momentum=0.9)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**16, growth_interval=10)

    def step(self, micro_batches):
        """One optimizer step over several micro batches."""
        running = 0.0
        for x, y in micro_batches:
            with torch.autocast("cpu", dtype=torch.float16):
                with torch.no_grad():
                    teacher_logits = self.teacher(x)
                student_logits = self.student(x)
            loss = distill_loss(
                student_logits.float(),
                teacher_logits.float(),
                y,
                self.cfg["temperature"],
                self.cfg["alpha"],
            )
            loss = loss / len(micro_batches)
            self.scaler.scale(loss).backward()
            running += loss.item()
        self.scaler.unscale_(self.optimizer)
        nn.utils.clip_grad_norm_(self.student.parameters(), self.cfg["clip"])
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad(set_to_none=True)
        return running
