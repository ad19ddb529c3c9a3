import torch
import torch.nn as nn


class ModuleValidator:
    """Replaces layers that mix information between samples."""

    @staticmethod
    def validate(model):
        return [
            name
            for name, m in model.named_modules()
            if isinstance(m, nn.modules.batchnorm._BatchNorm)
        ]

    @staticmethod
    def fix(model, groups=4):
        for name, child in model.named_children():
            if isinstance(child, nn.modules.batchnorm._BatchNorm):
                setattr(
                    model, name, nn.GroupNorm(min(groups, child.num_features), child.num_features)
                )
            else:
                ModuleValidator.fix(child, groups)
        return model


class DPOptimizer:
    """Clips the gradient of every sample, sums them, adds noise and steps the wrapped optimizer."""

    def __init__(self, optimizer, noise_multiplier, max_grad_norm, gen):
        self.optimizer = optimizer
        self.noise_multiplier, self.max_grad_norm, self.gen = noise_multiplier, max_grad_norm, gen
        self.summed, self.n_samples = {}, 0

    @property
    def params(self):
        return [p for group in self.optimizer.param_groups for p in group["params"]]

    def zero_grad(self):
        self.optimizer.zero_grad(set_to_none=True)

    @torch.no_grad()
    def accumulate_sample(self):
        grads = {p: p.grad for p in self.params if p.grad is not None}
        norm = torch.stack([g.norm() for g in grads.values()]).norm()
        scale = (self.max_grad_norm / (norm + 1e-6)).clamp(max=1.0)
        for p, g in grads.items():
            self.summed[p] = self.summed[p] + scale * g if p in self.summed else scale * g
        self.n_samples += 1
        self.zero_grad()

    @torch.no_grad()
    def step(self):
        for p, total in self.summed.items():
            noise = (
                torch.randn(total.shape, generator=self.gen)
                * self.noise_multiplier
                * self.max_grad_norm
            )
            p.grad = (total + noise) / self.n_samples
        self.optimizer.step()
        self.summed, self.n_samples = {}, 0
        self.zero_grad()
