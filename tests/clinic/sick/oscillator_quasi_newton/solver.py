import torch


class Solver:
    def __init__(self, model, loss_fn, lr=0.5, max_iter=8):
        self.model = model
        self.loss_fn = loss_fn
        self.optimizer = torch.optim.LBFGS(
            model.parameters(), lr=lr, max_iter=max_iter, history_size=10
        )
        self.history = []

    def closure(self):
        loss = self.loss_fn(self.model)
        loss.backward()  # <~ GS501
        return loss

    def training_step(self):
        self.optimizer.zero_grad()  # <- GS501
        loss = self.optimizer.step(self.closure)
        self.history.append(loss.item())

    def fit(self, steps):
        for step in range(steps):
            self.training_step()
            if step % 2 == 0:
                print(f"step {step} loss {self.history[-1]:.5f}")
