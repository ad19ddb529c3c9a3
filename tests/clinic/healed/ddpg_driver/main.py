import copy
import random
from collections import deque

import torch
import torch.nn.functional as F
from nets import Actor, Critic


class Road:
    def reset(self):
        self.s = torch.tensor(
            [
                random.uniform(0, 300),
                random.uniform(-180, 180),
                random.uniform(0, 5000),
                random.uniform(600, 9000),
            ]
        )
        return self.s

    def step(self, action):
        self.s = self.s + torch.tensor(
            [10 * action[0], 5 * action[1], self.s[0] / 3.6, 50 * action[0]]
        )
        reward = -abs(self.s[1].item()) / 180
        return self.s, reward


class DDPG:
    def __init__(self, n_state=4, n_action=2, gamma=0.95, tau=0.01):
        self.actor, self.critic = Actor(n_state, n_action), Critic(n_state, n_action)
        self.actor_t, self.critic_t = copy.deepcopy(self.actor), copy.deepcopy(self.critic)
        self.opt_a = torch.optim.Adam(self.actor.parameters(), lr=1e-4)
        self.opt_c = torch.optim.Adam(self.critic.parameters(), lr=1e-3)
        self.gamma, self.tau = gamma, tau
        self.memory = deque(maxlen=500)

    @torch.no_grad()
    def act(self, state):
        return (self.actor(state) + 0.1 * torch.randn(2)).clamp(-1, 1)

    def learn(self, batch_size=32):
        batch = random.sample(self.memory, batch_size)
        s, a, r, s2 = (torch.stack(x) for x in zip(*batch, strict=True))
        with torch.no_grad():
            target = r + self.gamma * self.critic_t(s2, self.actor_t(s2))
        critic_loss = F.mse_loss(self.critic(s, a), target)
        self.opt_c.zero_grad()
        critic_loss.backward()
        self.opt_c.step()

        actor_loss = -self.critic(s, self.actor(s)).mean()
        self.opt_a.zero_grad()
        actor_loss.backward()
        self.opt_a.step()
        for net, old in ((self.actor, self.actor_t), (self.critic, self.critic_t)):
            for p, q in zip(net.parameters(), old.parameters(), strict=True):
                q.data.lerp_(p.data, self.tau)
        return critic_loss.item(), actor_loss.item()


if __name__ == "__main__":
    random.seed(2)
    torch.manual_seed(2)
    env, agent = Road(), DDPG()
    state = env.reset()
    for t in range(60):
        action = agent.act(state)
        nxt, reward = env.step(action)
        agent.memory.append((state, action, torch.tensor([reward]), nxt))
        state = nxt if t % 10 else env.reset()
        if t >= 50:
            print(t, agent.learn())
