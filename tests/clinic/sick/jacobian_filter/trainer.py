import torch


class Module(torch.nn.Module):
    def training_step(self, batch):
        raise NotImplementedError

    def test_step(self, batch):
        raise NotImplementedError

    def configure_optimizers(self):
        raise NotImplementedError


class Trainer:
    """A loop that owns epochs, modes and contexts."""

    def __init__(self, max_epochs=3, inference_mode=True):
        self.max_epochs = max_epochs
        self.inference_mode = inference_mode

    def fit(self, module, batches):
        optimizer = module.configure_optimizers()
        module.train()
        for epoch in range(self.max_epochs):
            total = 0.0
            for batch in batches:
                loss = module.training_step(batch)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += loss.item()
            print(f"epoch {epoch}: train loss {total / len(batches):.4f}")

    def test(self, module, batches):
        module.eval()
        context = torch.inference_mode() if self.inference_mode else torch.no_grad()  # <- GS304
        with context:
            scores = [module.test_step(batch) for batch in batches]
        print(f"test mse {sum(scores) / len(scores):.4f}")
