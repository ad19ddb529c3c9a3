import torch


class PerParamScheduler:
    """Keeps one optimizer with its learning rate schedule for every parameter it is called with."""

    def __init__(self, optimizer, optim_args, scheduler, scheduler_args):
        self.optimizer = optimizer
        self.optim_args = optim_args
        self.scheduler = scheduler
        self.scheduler_args = scheduler_args
        self.optim_objs = {}

    def _get_optim(self, param):
        optim = self.optimizer([param], **self.optim_args)
        return self.scheduler(optim, **self.scheduler_args)  # <~ GS000

    def __call__(self, params):
        for p in params:
            if p not in self.optim_objs:
                self.optim_objs[p] = self._get_optim(p)
            self.optim_objs[p].step()  # <- GS000

    def current_lr(self):
        if not self.optim_objs:
            return self.optim_args["lr"]
        return next(iter(self.optim_objs.values())).get_last_lr()[0]


def exponential_lr(optim_args, gamma):
    return PerParamScheduler(
        torch.optim.Adam, optim_args, torch.optim.lr_scheduler.ExponentialLR, {"gamma": gamma}
    )
