"""Modes of a model that are not what they were meant to be, and those that look like them."""

from __future__ import annotations

from tests.looking import Session
from tests.test_oddities import are_told_at_their_lines, told

MODES = """
from torch.utils.data import DataLoader, TensorDataset

def dropped(p=0.3):
    return nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Dropout(p), nn.Linear(6, 1))

def squares(net):
    return net(torch.randn(8, 4)).pow(2).mean()

def loader(n=16):
    return DataLoader(TensorDataset(torch.randn(n, 4), torch.randn(n, 1)), 8)
"""

MODES_SICK = """
net, val_loader = dropped(), loader()
for epoch in range(2):
    train(net, squares)
    total = 0.0
    with torch.no_grad():  # <- GS550
        for x, y in val_loader:
            total += F.mse_loss(net(x), y).item()

class Fitter:
    def __init__(self):
        self.net = dropped()
    @torch.no_grad()  # <- GS550
    def evaluate(self, data):
        return sum(F.mse_loss(self.net(x), y).item() for x, y in data)
    def run_epoch(self, data, grad):
        for x, y in data:
            with torch.set_grad_enabled(grad):  # <- GS550
                loss = F.mse_loss(self.net(x), y)
            self.last = loss.item()
            if grad:
                train(self.net, squares, 1)
    def fit(self):
        self.run_epoch(loader(), True)
        self.evaluate(loader())
        self.run_epoch(loader(), False)
        return self.validate()
    def validate(self):
        return self.run_epoch(loader(), grad=False)
Fitter().fit()

class Attention(nn.Module):
    def __init__(self, dropout=0.2):
        super().__init__()
        self.q, self.dropout_p = nn.Linear(4, 4), dropout
    def forward(self, x):
        if not self.training:
            self.dropout_p = 0.0  # <- GS551
        q = self.q(x)
        return F.scaled_dot_product_attention(q, q, q, dropout_p=self.dropout_p)
attention = nn.Sequential(Attention(), nn.Linear(4, 1))
for epoch in range(2):
    attention.train()
    train(attention, squares)
    attention.eval()
    with torch.no_grad():
        attention(torch.randn(8, 4))

def freeze_bn(model):
    for m in model.modules():
        if isinstance(m, nn.BatchNorm1d):
            m.eval()  # <- GS314
net = dropped()
freeze_bn(net)
for epoch in range(2):
    net.train()
    train(net, squares)
"""

MODES_HEALTHY = """
test_loader, model = loader(), dropped()
with torch.no_grad():  # before anything is trained
    model(next(iter(test_loader))[0])
train(model, squares)
with torch.no_grad():  # what is trained runs for its values
    value = model(torch.randn(8, 4))
    valid = value > 0
    fake = [model(torch.randn(8, 4)) for _ in range(3)]
def mc_predict(net, test_x):
    with torch.no_grad():
        return torch.stack([net(test_x) for _ in range(5)]).mean(0)  # monte carlo
mc_predict(model, torch.randn(8, 4))
def recalibrate(net, data):
    with torch.no_grad():
        for x, _ in data:
            net(x)
recalibrate(model, loader())

plain = nn.Sequential(nn.Linear(4, 6), nn.Dropout(0.0), nn.Linear(6, 1))
for net in (plain, dropped(0.1)):
    train(net, squares)
    if net is not plain:
        net.train(False)
    with torch.no_grad():
        for x, y in test_loader:
            F.mse_loss(net(x), y)
    train(net.train(), squares)

class Scheduled(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.dropout, self.drop_path = nn.Linear(4, 1), 0.2, 0.1
    def anneal(self):
        self.dropout = 0.0
    def forward(self, x):
        self.drop_path = 0.1 if self.training else 0.0
        return F.dropout(self.body(x), self.dropout, self.training)
net = Scheduled()
for epoch in range(2):
    net.train()
    train(net, squares)
    net.eval()
    with torch.no_grad():
        net(torch.randn(8, 4))
    net.anneal()

def without_statistics(net, x):  # for some passes only
    norms = [m for m in net.modules() if isinstance(m, nn.BatchNorm1d)]
    for m in norms:
        m.eval()
    out = net(x)
    net.train()
    return out
def virtual(m):
    return m(torch.randn(8, 4)).mean() + without_statistics(m, torch.ones(8, 4)).mean()
train(dropped(0.1), virtual, 5)
kept = dropped()
for epoch in range(2):
    kept.train()
    kept[1].eval()
    train(kept, squares)
"""


def test_each_is_told_at_its_line(session: Session) -> None:
    are_told_at_their_lines(session, MODES + MODES_SICK)


def test_what_only_looks_like_them_is_left_alone(session: Session) -> None:
    assert told(session, MODES + MODES_HEALTHY) == []
