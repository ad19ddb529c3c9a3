import copy

import torch
from torch import nn
from torch.func import functional_call


class Regressor(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(1, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU()
        )
        self.out = nn.Linear(hidden, 1)

    def forward(self, x):
        return self.out(self.net(x))


class MAML:
    def __init__(self, model, inner_lr=0.02, meta_lr=1e-3, inner_steps=1):
        self.model = model
        self.inner_lr = inner_lr
        self.inner_steps = inner_steps
        self.criterion = nn.MSELoss()
        self.meta_optimizer = torch.optim.Adam(model.parameters(), lr=meta_lr)

    def inner_update(self, support_x, support_y):
        adapted = copy.deepcopy(self.model)  # <~ GS303
        for _ in range(self.inner_steps):
            loss = self.criterion(adapted(support_x), support_y)
            grads = torch.autograd.grad(loss, list(adapted.parameters()), create_graph=True)
            for param, grad in zip(adapted.parameters(), grads, strict=True):
                param.data -= self.inner_lr * grad  # <- GS303
        return adapted

    def meta_train_step(self, tasks):
        meta_loss = 0.0
        for (support_x, support_y), (query_x, query_y) in tasks:
            adapted = self.inner_update(support_x, support_y)
            meta_loss = meta_loss + self.criterion(adapted(query_x), query_y)
        meta_loss = meta_loss / len(tasks)
        self.outer_update(meta_loss)
        return meta_loss.item()

    def outer_update(self, meta_loss):
        self.meta_optimizer.zero_grad()
        meta_loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 10.0)
        self.meta_optimizer.step()

    def initial_prediction(self, x):
        params = {name: p.detach() for name, p in self.model.named_parameters()}
        return functional_call(self.model, params, (x,))
