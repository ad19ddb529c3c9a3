import copy

import torch
import torch.nn.functional as F


class Client:
    """One hospital: trains the shared model on its own records for a few local epochs."""

    def __init__(self, name, records, model, lr=0.1, batch_size=32):
        self.name = name
        self.x, self.y = records
        self.batch_size = batch_size
        self.model = copy.deepcopy(model)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=lr, momentum=0.9)  # <~ GS307

    def receive(self, global_model):
        self.model = copy.deepcopy(global_model)  # <- GS307

    def fit(self, epochs):
        self.model.train()
        losses = []
        for _ in range(epochs):
            order = torch.randperm(len(self.x))
            for rows in order.split(self.batch_size):
                loss = F.binary_cross_entropy_with_logits(self.model(self.x[rows]), self.y[rows])
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                losses.append(loss.item())
        return sum(losses) / len(losses)

    def upload(self):
        return {k: v.detach().clone() for k, v in self.model.state_dict().items()}, len(self.x)
