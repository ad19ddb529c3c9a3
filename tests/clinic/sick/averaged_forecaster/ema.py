import torch


class EMAModel:
    """Keeps an exponential moving average of a model's parameters."""

    def __init__(self, parameters, decay=0.99):
        self.decay = decay
        self.shadow_params = [p.detach().clone() for p in parameters]
        self.saved_params = None

    @torch.no_grad()
    def step(self, parameters):
        for shadow, param in zip(self.shadow_params, parameters, strict=False):
            shadow.sub_((1 - self.decay) * (shadow - param))

    @torch.no_grad()
    def copy_to(self, parameters):
        for shadow, param in zip(self.shadow_params, parameters, strict=False):
            param.copy_(shadow)  # <~ GS000

    def store(self, parameters):
        self.saved_params = [p.detach().clone() for p in parameters]

    @torch.no_grad()
    def restore(self, parameters):
        for saved, param in zip(self.saved_params, parameters, strict=False):
            param.copy_(saved)
        self.saved_params = None
