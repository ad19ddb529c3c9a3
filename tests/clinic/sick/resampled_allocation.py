"""A network that reads past returns and allocates a portfolio by a resampling layer."""

import torch
from torch import nn
from torch.distributions import MultivariateNormal


class ResampleAllocator(nn.Module):
    """Averages the optimal weights over draws from the estimated distribution of returns."""

    def __init__(self, draws=24, per_draw=12):
        super().__init__()
        self.draws = draws
        self.per_draw = per_draw
        self.log_risk_aversion = nn.Parameter(torch.zeros(()))

    def forward(self, mean, scale_tril):
        dist = MultivariateNormal(mean, scale_tril=scale_tril)
        samples = dist.sample((self.draws, self.per_draw))  # <- GS304
        drawn_mean = samples.mean(1)
        drawn_var = samples.var(1) + 1e-3
        utility = drawn_mean / (self.log_risk_aversion.exp() * drawn_var)
        return torch.softmax(utility, dim=-1).mean(0)


class PortfolioNet(nn.Module):
    def __init__(self, assets, hidden=16):
        super().__init__()
        self.assets = assets
        self.rnn = nn.LSTM(assets, hidden, batch_first=True)
        self.norm = nn.LayerNorm(hidden)
        self.mean = nn.Linear(hidden, assets)
        self.factor = nn.Linear(hidden, assets)
        self.allocator = ResampleAllocator()

    def forward(self, window):
        _, (state, _) = self.rnn(window)
        state = self.norm(state[-1])
        mean = 0.1 * self.mean(state)
        scale = 0.1 + nn.functional.softplus(self.factor(state))
        return self.allocator(mean, torch.diag_embed(scale))


def negative_sharpe(weights, future):
    earned = (weights.unsqueeze(1) * future).sum(-1)
    return -(earned.mean(1) / (earned.std(1) + 1e-3)).mean()


def market(days, assets):
    drift = 0.05 * torch.randn(assets)
    shocks = 0.3 * torch.randn(days, assets)
    momentum = torch.zeros(days, assets)
    for day in range(1, days):
        momentum[day] = 0.7 * momentum[day - 1] + shocks[day]
    return drift + momentum


class WindowLoader:
    def __init__(self, returns, lookback, horizon, batch_size):
        self.returns, self.batch_size = returns, batch_size
        self.lookback, self.horizon = lookback, horizon

    def __iter__(self):
        last = len(self.returns) - self.lookback - self.horizon
        for starts in torch.randperm(last).split(self.batch_size):
            x = [self.returns[s : s + self.lookback] for s in starts]
            y = [self.returns[s + self.lookback : s + self.lookback + self.horizon] for s in starts]
            yield torch.stack(x), torch.stack(y)


def main():
    torch.manual_seed(0)
    loader = WindowLoader(market(120, 6), lookback=12, horizon=5, batch_size=16)
    net = PortfolioNet(6)
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    for epoch in range(4):
        losses = []
        for window, future in loader:
            loss = negative_sharpe(net(window), future)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print(f"epoch {epoch}: sharpe {-sum(losses) / len(losses):.4f}")


if __name__ == "__main__":
    main()
