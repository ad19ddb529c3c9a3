import torch
import torch.nn as nn
import torch.nn.functional as F


class GraphConv(nn.Module):
    """y_i = W0 x_i + sum over neighbours W1 x_j"""

    def __init__(self, in_dim, out_dim, init="normal"):
        super().__init__()
        self.w0 = nn.Linear(in_dim, out_dim)
        self.w1 = nn.Linear(in_dim, out_dim)
        for lin in (self.w0, self.w1):
            if init == "normal":
                nn.init.normal_(lin.weight, std=0.1)
                nn.init.zeros_(lin.bias)
            elif init == "zero":
                nn.init.zeros_(lin.weight)  # <~ GS000
                nn.init.zeros_(lin.bias)
            else:
                raise ValueError(f"invalid GraphConv initialization {init!r}")

    def forward(self, x, edges):
        src, dst = edges.unbind(-1)
        msg = self.w1(x)
        agg = torch.zeros_like(msg)
        agg = agg.index_add(1, src, msg[:, dst]).index_add(1, dst, msg[:, src])
        return self.w0(x) + 0.25 * agg


class MeshRefinementStage(nn.Module):
    """Moves vertices by offsets predicted from aligned image features."""

    def __init__(self, feat_dim, hidden_dims, gconv_init):
        super().__init__()
        self.bottleneck = nn.Linear(feat_dim, hidden_dims[0])
        dims = [hidden_dims[0] + 3] + list(hidden_dims)
        self.gconvs = nn.ModuleList(
            GraphConv(dims[i] if i == 0 else dims[i] + 3, dims[i + 1], init=gconv_init)
            for i in range(len(hidden_dims))
        )
        self.vert_offset = nn.Linear(hidden_dims[-1] + 3, 3)

    def forward(self, verts, edges, feats):
        pos = verts[None].expand(feats.shape[0], -1, -1)
        x = torch.cat([F.relu(self.bottleneck(feats)), pos], dim=-1)
        for gconv in self.gconvs:
            x = torch.cat([F.relu(gconv(x, edges)), pos], dim=-1)
        return pos + torch.tanh(self.vert_offset(x))
