"""A linear chain in log space with forbidden transitions."""

import torch


def log_matmul(a, b):
    # (B, n, n) x (B, n, n) in the log semiring
    return torch.logsumexp(a.unsqueeze(-1) + b.unsqueeze(-3), dim=-2)  # <- GS102


def partition(potentials):
    out = potentials[:, 0]
    for t in range(1, potentials.shape[1]):
        out = log_matmul(out, potentials[:, t])
    return out


class Chain(torch.nn.Module):
    def __init__(self, feats, states):
        super().__init__()
        self.emit = torch.nn.Linear(feats, states)
        self.trans = torch.nn.Parameter(torch.randn(states, states) * 0.1)
        forbidden = torch.tril(torch.ones(states, states), -1).bool()
        self.register_buffer("forbidden", forbidden)

    def scores(self, x):
        e = self.emit(x).unsqueeze(-2)
        s = e + self.trans
        return s.masked_fill(self.forbidden, float("-inf"))

    def nll(self, x):
        s = self.scores(x)
        z = partition(s)
        gold = s[:, torch.arange(s.shape[1]), 0, 0].sum(-1)
        return (z[:, 0, :].logsumexp(-1) - gold).mean()


if __name__ == "__main__":
    torch.manual_seed(2)
    chain = Chain(6, 4)
    opt = torch.optim.SGD(chain.parameters(), lr=0.1)
    data = torch.randn(5, 7, 6)
    for epoch in range(3):
        opt.zero_grad()
        loss = chain.nll(data)
        loss.backward()
        opt.step()
        print(epoch, float(loss))
