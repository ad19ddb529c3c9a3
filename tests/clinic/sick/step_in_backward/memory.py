import torch


class OptimizerInBackward:
    """Applies each update as soon as its gradient is complete, and frees the gradient at once."""

    def __init__(self, model, lr, momentum=0.9):
        self.optimizers = {
            param: torch.optim.SGD([param], lr=lr, momentum=momentum)
            for param in model.parameters()
        }
        self.schedulers = [
            torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.98)
            for optimizer in self.optimizers.values()
        ]
        for param in self.optimizers:
            param.register_post_accumulate_grad_hook(self.apply)  # <~ GS506

    def apply(self, param):
        self.optimizers[param].step()
        self.optimizers[param].zero_grad()

    def next_epoch(self):
        for scheduler in self.schedulers:
            scheduler.step()
