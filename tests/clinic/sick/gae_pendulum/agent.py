import torch
from torch import nn, optim


class A2C(nn.Module):
    def __init__(self, n_features, n_actions, critic_lr, actor_lr, n_envs):
        super().__init__()
        self.n_envs = n_envs
        self.critic = nn.Sequential(
            nn.Linear(n_features, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1)
        )
        self.actor = nn.Sequential(
            nn.Linear(n_features, 32),
            nn.ReLU(),
            nn.Linear(32, 32),
            nn.ReLU(),
            nn.Linear(32, n_actions),
        )
        self.critic_optim = optim.RMSprop(self.critic.parameters(), lr=critic_lr)
        self.actor_optim = optim.RMSprop(self.actor.parameters(), lr=actor_lr)

    def select_action(self, obs):
        policy = torch.distributions.Categorical(logits=self.actor(obs))
        actions = policy.sample()
        return actions, policy.log_prob(actions), self.critic(obs).squeeze(-1), policy.entropy()

    def get_losses(self, rewards, log_probs, values, last_value, entropy, masks, gamma, lam, coef):
        steps = len(rewards)
        advantages = torch.zeros(steps, self.n_envs)
        following = torch.cat([values[1:], last_value.unsqueeze(0)])
        gae = torch.zeros(self.n_envs)
        for t in reversed(range(steps)):
            td_error = rewards[t] + gamma * masks[t] * following[t] - values[t]
            gae = td_error + gamma * lam * masks[t] * gae  # <~ GS000
            advantages[t] = gae
        critic_loss = advantages.pow(2).mean()  # <- GS000
        actor_loss = -(advantages.detach() * log_probs).mean() - coef * entropy.mean()
        return critic_loss, actor_loss

    def update_parameters(self, critic_loss, actor_loss):
        self.critic_optim.zero_grad()
        critic_loss.backward()
        self.critic_optim.step()
        self.actor_optim.zero_grad()
        actor_loss.backward()
        self.actor_optim.step()
