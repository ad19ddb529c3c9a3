import torch
import torch.nn.functional as F
from torch import nn

CFG = {"users": 50, "items": 80, "feat": 12, "dim": 8, "epochs": 4, "batches": 8, "batch": 64}


class UserTower(nn.Module):
    def __init__(self, users, dim):
        super().__init__()
        self.table = nn.Embedding(users, dim)
        self.bias = nn.Embedding(users, 1)
        nn.init.normal_(self.table.weight, std=0.1)
        nn.init.zeros_(self.bias.weight)

    def forward(self, ids):
        return self.table(ids), self.bias(ids).squeeze(1)


class ItemTower(nn.Module):
    def __init__(self, feat, dim):
        super().__init__()
        self.project = nn.Linear(feat, dim)

    def forward(self, features):
        return self.project(features)


class Interactions:
    def __init__(self, cfg):
        self.cfg = cfg
        self.features = torch.randn(cfg["items"], cfg["feat"])
        taste = torch.randn(cfg["users"], cfg["feat"])
        self.affinity = taste @ self.features.T

    def sample(self):
        u = torch.randint(0, self.cfg["users"], (self.cfg["batch"],))
        a = torch.randint(0, self.cfg["items"], (self.cfg["batch"],))
        b = torch.randint(0, self.cfg["items"], (self.cfg["batch"],))
        better = self.affinity[u, a] > self.affinity[u, b]
        return u, torch.where(better, a, b), torch.where(better, b, a)


def bpr_loss(user_vec, pos_vec, neg_vec):
    margin = (user_vec * (pos_vec - neg_vec)).sum(1)
    return F.softplus(-margin).mean(), (margin > 0).float().mean()


def train(cfg):
    log = Interactions(cfg)
    users, items = UserTower(cfg["users"], cfg["dim"]), ItemTower(cfg["feat"], cfg["dim"])
    optimizer = torch.optim.Adam([*users.parameters(), *items.parameters()], lr=0.02)
    item_vecs = items(log.features)  # <- GS508
    for epoch in range(cfg["epochs"]):
        loss_sum = acc_sum = 0.0
        for _ in range(cfg["batches"]):
            u, pos, neg = log.sample()
            user_vec, bias = users(u)
            loss, acc = bpr_loss(user_vec, item_vecs[pos], item_vecs[neg])
            loss = loss + 1e-4 * (user_vec.pow(2).mean() + bias.pow(2).mean())
            optimizer.zero_grad()
            loss.backward(retain_graph=True)  # <~ GS508
            optimizer.step()
            loss_sum += loss.item()
            acc_sum += acc.item()
        n = cfg["batches"]
        print(f"epoch {epoch} bpr {loss_sum / n:.4f} pair acc {acc_sum / n:.3f}")


def main():
    torch.manual_seed(15)
    train(CFG)


if __name__ == "__main__":
    main()
