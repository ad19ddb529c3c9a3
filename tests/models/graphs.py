"""Networks over graphs, of torch_geometric."""

from __future__ import annotations

_DATA = """
import torch
from torch import nn
from torch_geometric import nn as gnn
torch.manual_seed(0)
x, y = torch.randn(6, 4), torch.tensor([0, 1, 0, 1, 1, 0])
edges = torch.tensor([[0, 1, 1, 2, 3, 4, 5, 2], [1, 0, 2, 3, 4, 5, 0, 5]])
groups = torch.tensor([0, 0, 0, 1, 1, 1])
"""

_BODIES = {
    "GCN": """
first, second = gnn.GCNConv(4, 8), gnn.GCNConv(8, 2)
h = nn.functional.dropout(first(x, edges).relu(), 0.3)
loss = nn.functional.cross_entropy(second(h, edges), y)
""",
    "graph attention": """
first, second = gnn.GATConv(4, 4, heads=2, dropout=0.2), gnn.GATv2Conv(8, 2, edge_dim=1)
h = first(x, edges).relu()
loss = nn.functional.cross_entropy(second(h, edges, torch.rand(8, 1)), y)
""",
    "graph transformer": """
first, norm = gnn.TransformerConv(4, 4, heads=2, edge_dim=2), gnn.GraphNorm(8)
h = norm(first(x, edges, torch.randn(8, 2)), groups)
loss = gnn.global_max_pool(h, groups).square().sum()
""",
    "principal neighbourhoods": """
aggregators, scalers = ["mean", "min", "max", "std"], ["identity", "amplification", "attenuation"]
net = gnn.PNAConv(4, 6, aggregators, scalers, deg=torch.tensor([0, 4, 2]))
loss = net(x, edges).abs().mean()
""",
    "pooling by score": """
first, pool, second = gnn.GraphConv(4, 8), gnn.TopKPooling(8, ratio=0.5), gnn.GraphConv(8, 2)
h, fewer, _, kept, _, _ = pool(first(x, edges).relu(), edges, batch=groups)
read = gnn.global_mean_pool(second(h, fewer), kept)
loss = nn.functional.cross_entropy(read, torch.tensor([1, 0]))
""",
    "gated steps, and set to set": """
walk, read = gnn.GatedGraphConv(6, num_layers=3), gnn.Set2Set(6, processing_steps=2)
loss = read(walk(x, edges), groups).square().sum()
""",
    "molecules, by distances": """
from torch_geometric.nn.models.schnet import GaussianSmearing, InteractionBlock
places = torch.randn(6, 3, requires_grad=True)
apart = (places[edges[0]] - places[edges[1]]).norm(dim=1)
smear, block = GaussianSmearing(0, 5, 8), InteractionBlock(4, 8, 6, 5.0)
energy = block(x, edges, apart, smear(apart)).sum()
(force,) = torch.autograd.grad(-energy, places, create_graph=True)
loss = energy.square() + (force - 1).square().mean()
""",
}

PROGRAMS = {name: _DATA + body for name, body in _BODIES.items()}
