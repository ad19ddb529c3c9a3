import copy

import torch
import torch.nn.functional as F

from networks import Actor, Critic


class SacAgent:
    def __init__(self, obs_dim, act_dim, args):
        self.args = args
        self.actor = Actor(obs_dim, act_dim)
        self.qf1, self.qf2 = Critic(obs_dim, act_dim), Critic(obs_dim, act_dim)
        self.target_qf1, self.target_qf2 = copy.deepcopy(self.qf1), copy.deepcopy(self.qf2)
        self.actor_optim = torch.optim.Adam(self.actor.parameters(), lr=args.p_lr)
        self.qf1_optim = torch.optim.Adam(self.qf1.parameters(), lr=args.q_lr)
        self.qf2_optim = torch.optim.Adam(self.qf2.parameters(), lr=args.q_lr)
        self.log_alpha = torch.zeros(1, requires_grad=True)
        self.alpha_optim = torch.optim.Adam([self.log_alpha], lr=args.p_lr)
        self.target_entropy = -float(act_dim)

    def update(self, obs, act, reward, next_obs, done):
        new_act, log_prob = self.actor.sample(obs)
        alpha_loss = -(self.log_alpha.exp() * (log_prob + self.target_entropy).detach()).mean()
        self.alpha_optim.zero_grad()
        alpha_loss.backward()
        self.alpha_optim.step()
        alpha = self.log_alpha.exp().detach()

        with torch.no_grad():
            next_act, next_log_prob = self.actor.sample(next_obs)
            next_q = torch.min(
                self.target_qf1(next_obs, next_act), self.target_qf2(next_obs, next_act)
            )
            target = reward + self.args.gamma * (1 - done) * (next_q - alpha * next_log_prob)
        qf1_loss = F.mse_loss(self.qf1(obs, act), target)
        qf2_loss = F.mse_loss(self.qf2(obs, act), target)

        q_new = torch.min(self.qf1(obs, new_act), self.qf2(obs, new_act))
        actor_loss = (alpha * log_prob - q_new.detach()).mean()  # <- GS303

        self.actor_optim.zero_grad()
        actor_loss.backward()
        self.actor_optim.step()
        self.qf1_optim.zero_grad()
        qf1_loss.backward()
        self.qf1_optim.step()
        self.qf2_optim.zero_grad()
        qf2_loss.backward()
        self.qf2_optim.step()
        self._soft_update(self.target_qf1, self.qf1)
        self._soft_update(self.target_qf2, self.qf2)
        return qf1_loss.item(), actor_loss.item()

    @torch.no_grad()
    def _soft_update(self, target, source):
        for slow, fast in zip(target.parameters(), source.parameters()):
            slow.lerp_(fast, self.args.polyak)
