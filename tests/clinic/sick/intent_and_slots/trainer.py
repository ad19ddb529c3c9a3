import torch
from losses import IntentSlotLoss


class ModelWithLoss(torch.nn.Module):
    def __init__(self, model, loss):
        super().__init__()
        self.model = model
        self.loss = loss

    def forward(self, batch):
        outputs = self.model(batch["ids"])
        loss, stats = self.loss(outputs, batch)
        return outputs, loss, stats


class Trainer:
    def __init__(self, model, optimizer):
        self.optimizer = optimizer
        self.loss = IntentSlotLoss()  # <~ GS307
        self.model_with_loss = ModelWithLoss(model, self.loss)

    def run(self, batches, epoch):
        self.model_with_loss.train()
        for batch in batches:
            _, loss, stats = self.model_with_loss(batch)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        text = " ".join(f"{k} {v:.4f}" for k, v in stats.items())
        weights = f"{self.loss.s_intent.item():.3f} {self.loss.s_slots.item():.3f}"
        print(f"epoch {epoch} loss {loss.item():.4f} {text} | s {weights}")
