import torch


class Rendezvous:
    """Two agents on a line have to meet on the flagged cell; a batch of games runs in parallel."""

    n_agents, n_actions, length = 2, 3, 5
    obs_dim, state_dim = 4, 4

    def __init__(self, batch, horizon=7):
        self.batch, self.horizon = batch, horizon

    def reset(self):
        self.pos, self.flag = (torch.randint(0, self.length, (self.batch, k)) for k in (2, 1))
        return self.observe()

    def observe(self):
        p, f = self.pos / (self.length - 1), self.flag / (self.length - 1)
        state = torch.cat([p, f, (p[:, :1] - p[:, 1:]).abs()], dim=1)
        agent_id = torch.tensor([0.0, 1.0]).expand(self.batch, 2)
        obs = torch.stack([p, f.expand(-1, 2), f.expand(-1, 2) - p, agent_id], dim=2)
        return obs, state

    def step(self, actions):
        self.pos = (self.pos + actions - 1).clamp(0, self.length - 1)
        on_flag = (self.pos == self.flag).float()
        return self.observe(), 0.05 * on_flag.sum(1) + on_flag.prod(1)
