"""Train one mesh refinement stage on synthetic shapes."""

import torch

from mesh import make_batch, uv_sphere
from model import MeshRefinementStage

CONFIG = {
    "seed": 3,
    "feat_dim": 12,
    "hidden_dims": (24, 32, 32),
    "gconv_init": "zero",  # <- GS000
    "batch_size": 8,
    "iters": 20,
    "lr": 3e-3,
    "edge_weight": 0.05,
    "log_every": 5,
}


def mesh_loss(pred, target, edges, edge_weight):
    vert = (pred - target).pow(2).sum(-1).mean()
    src, dst = edges.unbind(-1)
    edge = (pred[:, src] - pred[:, dst]).pow(2).sum(-1).mean()
    return vert + edge_weight * edge, vert


def main(cfg=CONFIG):
    torch.manual_seed(cfg["seed"])
    gen = torch.Generator().manual_seed(cfg["seed"])
    verts, edges = uv_sphere()
    net = MeshRefinementStage(cfg["feat_dim"], cfg["hidden_dims"], cfg["gconv_init"])
    optimizer = torch.optim.Adam(net.parameters(), lr=cfg["lr"])

    for it in range(1, cfg["iters"] + 1):
        feats, target = make_batch(verts, cfg["batch_size"], cfg["feat_dim"], gen)
        pred = net(verts, edges, feats)
        loss, vert = mesh_loss(pred, target, edges, cfg["edge_weight"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if it % cfg["log_every"] == 0:
            print(f"iter {it:4d}  loss {loss.item():.5f}  vert {vert.item():.5f}")
    return net


if __name__ == "__main__":
    main()
