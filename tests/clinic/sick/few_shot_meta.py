"""Few-shot MAML with a single inner step."""

import argparse

import torch
from torch import nn
from torch.nn import functional as F


class Learner(nn.Module):
    def __init__(self, n_in, n_way):
        super().__init__()
        shapes = [(24, n_in), (24,), (n_way, 24), (n_way,)]
        self.vars = nn.ParameterList([nn.Parameter(torch.randn(s) * 0.1) for s in shapes])

    def forward(self, x, vars=None):
        w1, b1, w2, b2 = self.vars if vars is None else vars
        return F.linear(F.relu(F.linear(x, w1, b1)), w2, b2)


class Meta(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.update_lr, self.update_step = args.update_lr, args.update_step
        self.net = Learner(args.dim, args.n_way)
        self.meta_optim = torch.optim.Adam(self.net.parameters(), lr=args.meta_lr)

    def forward(self, x_spt, y_spt, x_qry, y_qry):
        task_num = x_spt.size(0)
        losses_q = [0 for _ in range(self.update_step + 1)]
        for i in range(task_num):
            loss = F.cross_entropy(self.net(x_spt[i]), y_spt[i])
            grad = torch.autograd.grad(loss, self.net.parameters(), create_graph=True)
            fast = [
                p - self.update_lr * g for g, p in zip(grad, self.net.parameters(), strict=True)
            ]
            with torch.no_grad():
                losses_q[0] += F.cross_entropy(self.net(x_qry[i]), y_qry[i])
            with torch.no_grad():  # <- GS303
                losses_q[1] += F.cross_entropy(self.net(x_qry[i], fast), y_qry[i])  # <~ GS303
            for k in range(1, self.update_step):
                loss = F.cross_entropy(self.net(x_spt[i], fast), y_spt[i])
                grad = torch.autograd.grad(loss, fast, create_graph=True)
                fast = [p - self.update_lr * g for g, p in zip(grad, fast, strict=True)]
                losses_q[k + 1] += F.cross_entropy(self.net(x_qry[i], fast), y_qry[i])
        loss_q = losses_q[-1] / task_num
        self.meta_optim.zero_grad()
        loss_q.backward()
        self.meta_optim.step()
        return [float(v) / task_num for v in losses_q]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--dim", type=int, default=10)
    parser.add_argument("--n_way", type=int, default=3)
    parser.add_argument("--update_lr", type=float, default=0.1)
    parser.add_argument("--update_step", type=int, default=1)
    parser.add_argument("--meta_lr", type=float, default=1e-3)
    args = parser.parse_args()
    torch.manual_seed(222)
    maml = Meta(args)
    for step in range(3):
        x = torch.randn(4, 12, args.dim)
        y = torch.randint(0, args.n_way, (4, 12))
        print(step, maml(x[:, :6], y[:, :6], x[:, 6:], y[:, 6:]))
