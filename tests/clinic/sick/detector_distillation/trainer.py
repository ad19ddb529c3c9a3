import torch

from losses import ChannelWiseDistillation, DetectionLoss


class DistillationTrainer:
    def __init__(self, student, teacher, lr=2e-3, weight=1.5):
        self.student = student
        self.teacher = teacher.eval()
        for p in self.teacher.parameters():
            p.requires_grad_(False)
        self.criterion = DetectionLoss()
        levels = 2
        self.distill = ChannelWiseDistillation([student.width] * levels, [teacher.width] * levels)
        self.weight = weight
        self.optimizer = self.build_optimizer(lr)

    def build_optimizer(self, lr, decay=5e-4):
        weights, others = [], []
        for name, p in self.student.named_parameters():
            (weights if p.ndim > 1 else others).append(p)
        optimizer = torch.optim.AdamW(others, lr=lr, weight_decay=0.0)  # <- GS307
        optimizer.add_param_group({"params": weights, "weight_decay": decay})
        return optimizer

    def train_step(self, images, targets):
        self.student.train()
        predictions, student_maps = self.student(images)
        with torch.no_grad():
            _, teacher_maps = self.teacher(images)
        detection = self.criterion(predictions, targets)
        imitation = self.distill(student_maps, teacher_maps)
        loss = detection + self.weight * imitation
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        return detection.item(), imitation.item()

    def fit(self, loader, epochs):
        for epoch in range(epochs):
            logs = [self.train_step(images, targets) for images, targets in loader]
            detection, imitation = (sum(v) / len(logs) for v in zip(*logs))
            print(f"epoch {epoch}: detection {detection:.4f} imitation {imitation:.5f}")
