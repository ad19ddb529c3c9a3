import copy

import torch
import torch.nn.functional as F
from sac_model import SACModel


class SACPolicy:
    def __init__(self, n_obs, n_act, config):
        self.config = config
        self.model = SACModel(n_obs, n_act, config["initial_alpha"])
        self.target_model = copy.deepcopy(self.model)
        self.build_optimizers()
        self.place(torch.device(config["device"]))

    def build_optimizers(self):
        lr, model = self.config["lr"], self.model
        critics = list(model.q1.parameters()) + list(model.q2.parameters())
        self.actor_optim = torch.optim.Adam(model.actor.parameters(), lr=lr)
        self.critic_optim = torch.optim.Adam(critics, lr=lr)
        self.alpha_optim = torch.optim.Adam([model.log_alpha], lr=10 * lr)  # <~ GS307

    def place(self, device):
        self.model.to(device)
        self.target_model.to(device)
        for model in (self.model, self.target_model):
            moved = model.log_alpha.detach().clone().to(device)  # <- GS307
            model.log_alpha = moved.requires_grad_()

    def learn(self, batch):
        obs, action, reward, next_obs = batch
        model, gamma = self.model, self.config["gamma"]
        alpha = model.log_alpha.exp().detach()

        with torch.no_grad():
            next_action, next_log_prob = model.sample(next_obs)
            q_next = torch.min(*self.target_model.q_values(next_obs, next_action))
            target = reward + gamma * (q_next - alpha * next_log_prob)
        q1, q2 = model.q_values(obs, action)
        critic_loss = F.mse_loss(q1, target) + F.mse_loss(q2, target)
        self.critic_optim.zero_grad()
        critic_loss.backward()
        self.critic_optim.step()

        fresh, log_prob = model.sample(obs)
        actor_loss = (alpha * log_prob - torch.min(*model.q_values(obs, fresh))).mean()
        self.actor_optim.zero_grad()
        actor_loss.backward()
        self.actor_optim.step()

        alpha_loss = -(model.log_alpha * (log_prob + model.target_entropy).detach()).mean()
        self.alpha_optim.zero_grad()
        alpha_loss.backward()
        self.alpha_optim.step()

        with torch.no_grad():
            for old, new in zip(self.target_model.parameters(), model.parameters(), strict=False):
                old.lerp_(new, self.config["tau"])
        return {"critic": critic_loss.item(), "actor": actor_loss.item(), "alpha": alpha.item()}
