import torch
import torch.nn as nn

from model import MultiTaskRegressor


class RegressionTask:
    def __init__(self, task_keys, lr, normalizers):
        self.model = MultiTaskRegressor(task_keys)
        self.loss_func = nn.MSELoss()
        self.normalizers = normalizers
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=lr)

    def _compute_losses(self, batch):
        predictions = self.model(batch)
        losses = {}
        for key, (mean, std) in self.normalizers.items():
            target = (batch["targets"][key] - mean) / std
            losses[key] = self.loss_func(predictions[key], target)  # <- GS503
        return {"loss": sum(losses.values()), "log": {k: v.item() for k, v in losses.items()}}

    def training_step(self, batch):
        out = self._compute_losses(batch)
        self.optimizer.zero_grad()
        out["loss"].backward()
        self.optimizer.step()
        return out["log"]

    @torch.no_grad()
    def predict(self, batch):
        out = self.model(batch)
        return {k: out[k] * std + mean for k, (mean, std) in self.normalizers.items()}
