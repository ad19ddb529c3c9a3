import torch
import torch.nn as nn


def skew(w):
    zero = torch.zeros_like(w[..., 0])
    return torch.stack(
        [
            torch.stack([zero, -w[..., 2], w[..., 1]], -1),
            torch.stack([w[..., 2], zero, -w[..., 0]], -1),
            torch.stack([-w[..., 1], w[..., 0], zero], -1),
        ],
        -2,
    )


def rotation_from_axis(w, theta):
    w_hat = skew(w)
    eye = torch.eye(3).expand_as(w_hat)
    t = theta[..., None, None]
    return eye + torch.sin(t) * w_hat + (1 - torch.cos(t)) * (w_hat @ w_hat)


class RigidBlurring(nn.Module):
    """Turns each ray of a blurred view into num_motion rigidly moved rays."""

    def __init__(self, num_views, num_motion=3, embed_dim=8, hidden=32):
        super().__init__()
        self.num_motion = num_motion
        self.view_embed = nn.Embedding(num_views, embed_dim)
        self.trunk = nn.Sequential(nn.Linear(embed_dim, hidden), nn.ReLU())
        self.r_branch = nn.Linear(hidden, 3 * num_motion)
        self.v_branch = nn.Linear(hidden, 3 * num_motion)
        self.w_branch = nn.Linear(hidden, num_motion)
        for branch in (self.r_branch, self.v_branch):
            nn.init.uniform_(branch.weight, -0.02, 0.02)

    def forward(self, rays_o, rays_d, view_idx):
        h = self.trunk(self.view_embed(view_idx))
        r = self.r_branch(h).view(-1, self.num_motion, 3)
        v = self.v_branch(h).view(-1, self.num_motion, 3)
        theta = torch.norm(r, dim=-1)
        theta += 1.0e-10  # <- GS401
        axis = r / theta.unsqueeze(-1)
        rot = rotation_from_axis(axis, theta)
        new_d = (rot @ rays_d[:, None, :, None]).squeeze(-1)
        new_o = (rot @ rays_o[:, None, :, None]).squeeze(-1) + v
        weight = torch.softmax(self.w_branch(h), dim=-1)
        return new_o, new_d, weight
