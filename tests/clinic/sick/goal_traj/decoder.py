import torch
import torch.nn.functional as F
from torch import nn


class MLP(nn.Module):
    def __init__(self, din, dout):
        super().__init__()
        self.linear, self.norm = nn.Linear(din, dout), nn.LayerNorm(dout)

    def forward(self, x):
        return F.relu(self.norm(self.linear(x)))


class CrossAttention(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(hidden, hidden) for _ in range(3))

    def forward(self, query, keys):
        att = self.q(query) @ self.k(keys).transpose(1, 2) / keys.shape[-1] ** 0.5
        return att.softmax(-1) @ self.v(keys)


class DecoderResCat(nn.Module):
    def __init__(self, hidden, din, dout):
        super().__init__()
        self.mlp, self.fc = MLP(din, hidden), nn.Linear(hidden + din, dout)

    def forward(self, x):
        return self.fc(torch.cat([x, self.mlp(x)], dim=-1))


class GoalDecoder(nn.Module):
    """Scores candidate goals, then completes the trajectory towards the reached goal."""

    def __init__(self, hidden, horizon):
        super().__init__()
        self.horizon = horizon
        self.score_embed = MLP(2, hidden)
        self.score_head = DecoderResCat(hidden, 2 * hidden, 1)
        self.goal_mlps = nn.Sequential(MLP(2, hidden), MLP(hidden, hidden), MLP(hidden, hidden))
        self.traj_attention = CrossAttention(hidden)
        self.traj_head = DecoderResCat(hidden, 3 * hidden, horizon * 2)

    def goal_loss(self, agent, goals, label):
        emb = self.score_embed(goals)
        ctx = agent.unsqueeze(1).expand(-1, goals.shape[1], -1)
        scores = self.score_head(torch.cat([emb, ctx], dim=-1)).squeeze(-1)
        return F.nll_loss(scores.log_softmax(-1), label)

    def traj_loss(self, agent, lanes, gt_traj):
        # the completion head reads the scene features, the goal score trains them
        agent, lanes = agent.detach(), lanes.detach()
        target_feature = self.goal_mlps(gt_traj[:, -1])
        target_feature.detach_()  # <- GS303
        attended = self.traj_attention(target_feature.unsqueeze(1), lanes).squeeze(1)
        pred = self.traj_head(torch.cat([agent, target_feature, attended], dim=-1))
        return F.smooth_l1_loss(pred.view(-1, self.horizon, 2), gt_traj)

    def forward(self, agent, lanes, goals, label, gt_traj):
        return self.goal_loss(agent, goals, label), self.traj_loss(agent, lanes, gt_traj)
