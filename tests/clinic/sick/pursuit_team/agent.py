import copy

import torch
from networks import ActorNetwork, CriticNetwork


class Agent:
    def __init__(self, index, n_agents, n_obs, n_actions, lr=1e-3, gamma=0.95, tau=0.01):
        self.index = index
        self.gamma = gamma
        self.tau = tau
        self.actor = ActorNetwork(n_obs, n_actions)
        self.critic = CriticNetwork(n_agents * n_obs, n_agents * n_actions)
        self.target_actor = copy.deepcopy(self.actor)
        self.target_critic = copy.deepcopy(self.critic)
        self.actor_optimizer = torch.optim.Adam(self.actor.parameters(), lr=lr)
        self.critic_optimizer = torch.optim.Adam(self.critic.parameters(), lr=lr)

    def choose_action(self, obs, noise):
        with torch.no_grad():
            action = self.actor(obs)
        return (action + noise * torch.randn_like(action)).clamp(-1, 1)

    def update_network_parameters(self):
        self.blend(self.actor, self.target_actor)
        self.blend(self.critic, self.target_critic)

    def blend(self, network, target):
        values = dict(network.named_parameters())
        target_values = dict(target.named_parameters())
        for name in values:
            mixed = self.tau * values[name].clone() + (1 - self.tau) * target_values[name].clone()
            values[name] = mixed
        network.load_state_dict(values)  # <- GS000
