import torch
from torch.distributions import Normal, kl_divergence


class LinearModel:
    def __init__(self, dim, noise_scale):
        self.prior = Normal(torch.zeros(dim), torch.ones(dim))
        self.noise_scale = noise_scale

    def log_likelihood(self, w, x, y):
        return Normal(x @ w, self.noise_scale).log_prob(y).sum()


class MeanFieldGuide:
    def __init__(self, dim):
        self.loc = torch.zeros(dim, requires_grad=True)
        self.log_scale = torch.full((dim,), -1.0, requires_grad=True)

    def params(self):
        return [self.loc, self.log_scale]

    def posterior(self):
        return Normal(self.loc, self.log_scale.exp())


class SVI:
    def __init__(self, model, guide, optim, num_data, num_particles=4):
        self.model = model
        self.guide = guide
        self.optim = optim
        self.num_data = num_data
        self.num_particles = num_particles

    def loss(self, x, y):
        q = self.guide.posterior()
        scale = self.num_data / x.shape[0]
        log_lik = 0.0
        for _ in range(self.num_particles):
            log_lik = log_lik + scale * self.model.log_likelihood(q.rsample(), x, y)
        kl = kl_divergence(q, self.model.prior).sum()
        return (kl - log_lik / self.num_particles) / self.num_data

    def step(self, x, y):
        loss = self.loss(x, y)
        loss.backward()
        self.optim(self.guide.params())
        for p in self.guide.params():
            p.grad = None
        return loss.item()
