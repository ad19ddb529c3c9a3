import torch
import torch.nn.functional as F


class Trainer:
    def __init__(self, model, optimizer, train_loader, val_loader, max_iter, interval_validate):
        self.model = model
        self.optim = optimizer
        self.train_loader = train_loader
        self.val_loader = val_loader
        self.max_iter = max_iter
        self.interval_validate = interval_validate
        self.epoch = 0
        self.iteration = 0

    def validate(self):
        self.model.eval()  # <~ GS538
        val_loss, correct, total = 0.0, 0, 0
        with torch.no_grad():
            for data, target in self.val_loader:
                score = self.model(data)
                val_loss += F.cross_entropy(score, target).item()
                correct += (score.argmax(1) == target).sum().item()
                total += target.numel()
        val_loss /= len(self.val_loader)
        accuracy = correct / total
        print(f"  iter {self.iteration:3d} val loss {val_loss:.4f} acc {accuracy:.3f}")  # <~ GS538

    def train_epoch(self):
        self.model.train()
        for data, target in self.train_loader:
            if self.iteration % self.interval_validate == 0:
                self.validate()  # <- GS538
            self.optim.zero_grad()
            loss = F.cross_entropy(self.model(data), target)
            loss.backward()
            self.optim.step()
            if self.iteration % 5 == 0:
                print(f"epoch {self.epoch} iter {self.iteration:3d} train loss {loss.item():.4f}")
            self.iteration += 1
            if self.iteration >= self.max_iter:
                break

    def train(self):
        while self.iteration < self.max_iter:
            self.train_epoch()
            self.epoch += 1
