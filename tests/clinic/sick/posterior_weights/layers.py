import torch
import torch.nn.functional as F
from distributions import Gaussian, kl_to_prior
from torch import nn


class BayesLinear(nn.Module):
    def __init__(self, n_in, n_out, prior_std=0.1, initial_rho=-4.0):
        super().__init__()
        self.prior_std = prior_std
        self.w_mean = nn.Parameter(torch.empty(n_out, n_in))
        self.w_rho = nn.Parameter(torch.full((n_out, n_in), initial_rho))
        self.bias = nn.Parameter(torch.zeros(n_out))
        nn.init.kaiming_uniform_(self.w_mean, a=5**0.5)
        self.posterior = Gaussian(self.w_mean.data, self.w_rho.data)  # <~ GS000

    def forward(self, x):
        mean = F.linear(x, self.w_mean, self.bias)
        std = F.linear(x.pow(2), F.softplus(self.w_rho).pow(2)).clamp(min=1e-12).sqrt()
        return mean + std * torch.randn_like(std)

    def kl(self):
        return kl_to_prior(self.posterior.mean, self.posterior.std, self.prior_std)  # <- GS000


class BayesNet(nn.Module):
    def __init__(self, n_in, hidden, n_out):
        super().__init__()
        self.fc1 = BayesLinear(n_in, hidden)
        self.fc2 = BayesLinear(hidden, n_out)

    def forward(self, x):
        return self.fc2(torch.tanh(self.fc1(x)))

    def kl(self):
        return sum(layer.kl() for layer in (self.fc1, self.fc2))
