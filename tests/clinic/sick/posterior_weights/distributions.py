import torch
import torch.nn.functional as F
from torch import nn


class Gaussian(nn.Module):
    """A factorised normal distribution over a whole weight matrix."""

    def __init__(self, mean, rho):
        super().__init__()
        self.mean = nn.Parameter(mean.clone())
        self.rho = nn.Parameter(rho.clone())

    @property
    def std(self):
        return F.softplus(self.rho)


def kl_to_prior(mean, std, prior_std):
    ratio = std / prior_std
    return (0.5 * (ratio.pow(2) + (mean / prior_std).pow(2) - 1) - torch.log(ratio)).sum()
