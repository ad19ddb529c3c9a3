import torch
import torch.nn.functional as F
from torch import nn

CFG = {"nodes": 120, "classes": 3, "feat": 16, "hidden": 24, "epochs": 25, "lr": 0.02, "deg": 5}


def make_graph(cfg):
    label = torch.randint(0, cfg["classes"], (cfg["nodes"],))
    centers = torch.randn(cfg["classes"], cfg["feat"])
    x = 0.4 * centers[label] + torch.randn(cfg["nodes"], cfg["feat"])
    src, dst = [], []
    for node in range(cfg["nodes"]):
        same = (label == label[node]).nonzero().flatten()
        pick = same[torch.randint(0, len(same), (cfg["deg"],))]
        src.append(pick)
        dst.append(torch.full_like(pick, node))
    edges = torch.stack([torch.cat(src), torch.cat(dst)])
    mask = torch.rand(cfg["nodes"]) < 0.4
    return x, edges, label, mask


class GraphConv(nn.Module):
    def __init__(self, in_dim, out_dim):
        super().__init__()
        self.message = nn.Linear(in_dim, out_dim, bias=False)
        self.self_loop = nn.Linear(in_dim, out_dim)

    def forward(self, x, edges):
        src, dst = edges
        messages = self.message(x)[src]
        degree = torch.bincount(dst, minlength=x.size(0)).clamp(min=1).unsqueeze(1)
        out = torch.zeros(x.size(0), messages.size(1))
        out[dst] += messages  # <- GS517
        return out / degree + self.self_loop(x)


class GCN(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.conv1 = GraphConv(cfg["feat"], cfg["hidden"])
        self.conv2 = GraphConv(cfg["hidden"], cfg["classes"])
        self.dropout = nn.Dropout(0.2)

    def forward(self, x, edges):
        x = F.relu(self.conv1(x, edges))
        return self.conv2(self.dropout(x), edges)


def accuracy(model, x, edges, label, mask):
    model.eval()
    with torch.no_grad():
        pred = model(x, edges).argmax(1)
    model.train()
    return (pred[mask] == label[mask]).float().mean().item()


def main():
    torch.manual_seed(1)
    x, edges, label, mask = make_graph(CFG)
    model = GCN(CFG)
    optimizer = torch.optim.Adam(model.parameters(), lr=CFG["lr"], weight_decay=5e-4)
    for epoch in range(CFG["epochs"]):
        optimizer.zero_grad()
        logits = model(x, edges)
        loss = F.cross_entropy(logits[mask], label[mask])
        loss.backward()
        optimizer.step()
        if epoch % 6 == 0:
            acc = accuracy(model, x, edges, label, ~mask)
            print(f"epoch {epoch:2d} loss {loss.item():.4f} test acc {acc:.3f}")


if __name__ == "__main__":
    main()
