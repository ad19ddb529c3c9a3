"""States of a model that are not what they were meant to be, and those that look like them: loaded,
drawn, following another network, in a mode."""

from __future__ import annotations

import re

import pytest

from tests.looking import Session
from tests.test_oddities import HEAD, told

LOADED = """
import copy
from collections import OrderedDict

def mlp(width=6):
    return nn.Sequential(nn.Linear(4, width), nn.ReLU(), nn.Linear(width, 1))

def squares(net):
    return net(torch.randn(8, 4)).pow(2).mean()
"""

LOADED_SICK = """
class Backbone(nn.Module):
    def __init__(self, state):
        super().__init__()
        self.body = mlp()
        self.restore(state)
    def restore(self, state):
        self.load_state_dict(state)
    def forward(self, x):
        return self.body(x)

class Net(nn.Module):
    def __init__(self, state):
        super().__init__()
        self.backbone, self.head = Backbone(state), nn.Linear(1, 1)
        self.init_weights()  # <- GS547
    def init_weights(self):
        for m in self.modules():
            if isinstance(m, nn.Linear):
                nn.init.xavier_uniform_(m.weight)
                m.bias.data.zero_()
    def forward(self, x):
        return self.head(self.backbone(x))
train(Net({f"body.{key}": one for key, one in mlp().state_dict().items()}), squares)

def restore(model, checkpoint):
    info = model.load_state_dict(checkpoint["state"], strict=False)  # <- GS546
model = mlp()
restore(model, {"state": {f"module.{key}": one for key, one in mlp().state_dict().items()}})
model.load_state_dict(strict=False, state_dict={"model": mlp().state_dict()})  # <- GS546
train(model, squares)

model, file = mlp(), {f"net.{key}": one for key, one in mlp().state_dict().items()}
own_state_dict = model.state_dict()
own_state_dict.update({key: one for key, one in file.items() if key in own_state_dict})
model.load_state_dict(own_state_dict)  # <- GS546
train(model, squares)

class Trainer:
    def __init__(self, net):
        self.net = net
        self.net.apply(self.initialise)  # <- GS548
    @staticmethod
    def initialise(m):
        if type(m) in (nn.Conv2d, nn.ConvTranspose2d):
            m.weight.data.normal_(0.0, 0.02)
        elif "BatchNorm" in type(m).__name__:
            nn.init.constant_(m.weight, 1)
train(Trainer(mlp()).net, squares)
"""

LOADED_HEALTHY = """
def draw(m):
    if isinstance(m, nn.Linear):
        nn.init.kaiming_normal_(m.weight)

def rate(m):  # no numbers are meant
    if isinstance(m, nn.Dropout):
        m.p = 0.1 if m.weight_init == "normal_" else nn.init.zeros_(m.mask)

state = OrderedDict(mlp().state_dict())
model = mlp()
model.apply(draw)
model.apply(rate)
model[:1].apply(lambda m: None)
model.load_state_dict(state)
nn.init.zeros_(model[2].weight)  # the head is new
nn.ReLU().apply(draw)
nn.Sequential(nn.Conv1d(2, 2, 3)).apply(draw)  # what the function is for it has filled elsewhere
missing = model.load_state_dict({"module.0.weight": state["0.weight"]}, strict=False)
print(missing.missing_keys)
model.load_state_dict({}, strict=False)
model.load_state_dict({"0.weight": state["0.weight"], "a": state["2.bias"]}, strict=False)
model.load_state_dict(model.state_dict())
start = model.state_dict()
kept = copy.deepcopy(start)
for turn in range(2):  # the rounds of a search for what may be left out
    model.load_state_dict(kept)
    train(model, squares)
with torch.device("meta"):
    late = mlp()
late.load_state_dict(state, assign=True)
train(late, squares)
late.apply(draw)  # trained and begun again
train(late, squares)
"""


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
train(dropped(0.1), lambda m: m(torch.randn(8, 4)).mean() + without_statistics(m, torch.ones(8, 4)).mean(), 5)
kept = dropped()
for epoch in range(2):
    kept.train()
    kept[1].eval()
    train(kept, squares)
"""

PAIRS = (
    (LOADED + LOADED_SICK, LOADED + LOADED_HEALTHY),
    (MODES + MODES_SICK, MODES + MODES_HEALTHY),
)
NAMES = ("loaded", "modes")


@pytest.mark.parametrize("text", [sick for sick, _ in PAIRS], ids=NAMES)
def test_each_is_told_at_its_line(session: Session, text: str) -> None:
    lines = enumerate((HEAD + text).splitlines(), 1)
    marked = [(rule[1], number) for number, one in lines if (rule := re.search(r"<- (\w+)", one))]
    assert sorted(told(session, text)) == sorted(marked)


@pytest.mark.parametrize("text", [healthy for _, healthy in PAIRS], ids=NAMES)
def test_what_only_looks_like_them_is_left_alone(session: Session, text: str) -> None:
    assert told(session, text) == []
