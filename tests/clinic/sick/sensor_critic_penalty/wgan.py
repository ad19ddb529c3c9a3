import torch
from networks import Critic, Generator


class WGAN_GP:
    def __init__(self, lambda_term=10.0, critic_iter=3, lr=1e-3, noise=8):
        self.noise = noise
        self.generator, self.critic = Generator(noise), Critic()
        self.g_optimizer = torch.optim.Adam(self.generator.parameters(), lr=lr, betas=(0.5, 0.9))
        self.c_optimizer = torch.optim.Adam(self.critic.parameters(), lr=lr, betas=(0.5, 0.9))
        self.lambda_term = lambda_term
        self.critic_iter = critic_iter

    def calculate_gradient_penalty(self, real, fake):
        eta = torch.rand(real.size(0), 1, 1)
        interpolated = (eta * real + (1 - eta) * fake).requires_grad_(True)
        scores = self.critic(interpolated)
        gradients = torch.autograd.grad(
            outputs=scores,
            inputs=interpolated,
            grad_outputs=torch.ones_like(scores),
            create_graph=True,
        )[0]
        return ((gradients.norm(2, dim=1) - 1) ** 2).mean() * self.lambda_term  # <- GS532

    def critic_step(self, real):
        with torch.no_grad():
            fake = self.generator(torch.randn(real.size(0), self.noise))
        penalty = self.calculate_gradient_penalty(real, fake)
        wasserstein = self.critic(real).mean() - self.critic(fake).mean()
        self.c_optimizer.zero_grad()
        (penalty - wasserstein).backward()
        self.c_optimizer.step()
        return wasserstein.item(), penalty.item()

    def generator_step(self, n):
        fake = self.generator(torch.randn(n, self.noise))
        loss = -self.critic(fake).mean()
        self.g_optimizer.zero_grad()
        loss.backward()
        self.g_optimizer.step()
        return loss.item()

    def train(self, batches):
        for step, batch in enumerate(batches):
            for real in batch.chunk(self.critic_iter):
                wasserstein, penalty = self.critic_step(real)
            loss = self.generator_step(len(real))
            if step % 4 == 0:
                print(f"{step:2d} W {wasserstein:.4f} penalty {penalty:.4f} G {loss:.4f}")
