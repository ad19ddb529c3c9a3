import torch
import torch.nn.functional as F
from agent import Agent


class Team:
    def __init__(self, n_agents, n_obs, n_actions):
        self.agents = [Agent(i, n_agents, n_obs, n_actions) for i in range(n_agents)]

    def act(self, observations, noise=0.1):
        return torch.stack(
            [
                a.choose_action(o, noise)
                for a, o in zip(self.agents, observations.unbind(-2), strict=False)
            ],
            -2,
        )

    def learn(self, batch):
        obs, actions, rewards, next_obs = batch
        with torch.no_grad():
            next_actions = torch.cat(
                [a.target_actor(next_obs[:, a.index]) for a in self.agents], dim=1
            )
        losses = []
        for agent in self.agents:
            q_next = agent.target_critic(next_obs.flatten(1), next_actions).detach()
            target = rewards[:, agent.index : agent.index + 1] + agent.gamma * q_next
            critic_loss = F.mse_loss(agent.critic(obs.flatten(1), actions.flatten(1)), target)
            agent.critic_optimizer.zero_grad()
            critic_loss.backward()
            agent.critic_optimizer.step()

            joint = actions.clone()
            joint[:, agent.index] = agent.actor(obs[:, agent.index])
            actor_loss = -agent.critic(obs.flatten(1), joint.flatten(1)).mean()
            agent.actor_optimizer.zero_grad()
            actor_loss.backward()
            agent.actor_optimizer.step()
            losses.append((critic_loss.item(), actor_loss.item()))
        for agent in self.agents:
            agent.update_network_parameters()
        return losses
