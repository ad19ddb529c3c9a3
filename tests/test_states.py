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

class Following:
    def __init__(self):
        self.net, self.target = mlp(), mlp()
    def follow(self):
        self.target.load_state_dict(self.target.state_dict())  # <- GS546
    def loss(self, net):
        self.follow()
        x = torch.randn(8, 4)
        return F.mse_loss(net(x), self.target(x).detach())
following = Following()
train(following.net, following.loss)

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
counted = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6))
old = {key: one.clone() for key, one in counted.state_dict().items() if "num_batches" not in key}
train(counted, squares)
counted.load_state_dict(old)  # torch fills in the counter, which is the module's own
train(counted, squares)
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

TWINS = """
import copy
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

def net(*widths):
    layers = [[nn.Linear(a, b), nn.BatchNorm1d(b), nn.ReLU()] for a, b in zip(widths, widths[1:])]
    return nn.Sequential(*sum(layers, []))

def loop(modules, loss, after, steps=6):
    optimizer = torch.optim.SGD([p for m in modules for p in m.parameters()], lr=0.01)
    for _ in range(steps):
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()
        after()
"""

TWINS_SICK = """
class Moco(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder_q, self.encoder_k = net(4, 6), net(4, 6)
        self.head_q, self.head_k = nn.Linear(6, 3), nn.Linear(6, 3)
    @torch.no_grad()
    def update(self):
        for q, k in zip(self.encoder_q.parameters(), self.encoder_k.parameters()):
            k.data = k.data * 0.9 + q.data * 0.1  # <- GS549
    def forward(self, x):
        with torch.no_grad():
            key = self.head_k(self.encoder_k(x))
        return F.mse_loss(self.head_q(self.encoder_q(x)), key)
moco = Moco()
loop([moco.encoder_q, moco.head_q], lambda: moco(torch.randn(8, 4)), moco.update)

class Agent:
    def __init__(self):
        self.online = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
        self.target = copy.deepcopy(self.online)
    def loss(self):
        s = torch.randn(8, 4)
        with torch.no_grad():
            goal = 0.9 * self.target(s).max(1).values
        return F.mse_loss(self.online(s)[:, 0], goal)
    def sync(self):
        pairs = zip(self.target[0].parameters(), self.online[0].parameters())
        for t, s in pairs:
            t.data.lerp_(s.data, 0.1)  # <- GS549
agent = Agent()
loop([agent.online], agent.loss, agent.sync)

student = net(4, 6, 2)
teacher = copy.deepcopy(student).eval()
def consistency():
    x = torch.randn(8, 4)
    with torch.no_grad():
        goal = teacher(x)
    return F.mse_loss(student(x), goal)
def average():
    with torch.no_grad():
        for name, p in student.named_parameters():
            teacher.get_parameter(name).mul_(0.9).add_(0.1 * p)  # <- GS549
loop([student], consistency, average)

class Ema:  # evaluated at the end only
    def __init__(self, model):
        self.model, self.module = model, copy.deepcopy(model).eval()
    def update(self):
        mine, own = ([p.detach() for p in m.parameters()] for m in (self.module, self.model))
        torch._foreach_lerp_(mine, own, 0.1)  # <- GS549
def run():  # when it has returned, the networks are gone
    a, b = net(4, 6), net(4, 6)
    twins = nn.ModuleDict({"slow": a.eval(), "fast": b})
    def both():
        with torch.no_grad():
            goal = twins["slow"](torch.ones(8, 4))
        return F.mse_loss(twins["fast"](torch.randn(8, 4)), goal)
    def follow():
        for slow, fast in zip(a.parameters(), b.parameters()):
            slow.data.mul_(0.9).add_(fast.data, alpha=0.1)  # <- GS549
    loop([b], both, follow, 12)
run()
ema = Ema(net(4, 6))
loop([ema.model], lambda: ema.model(torch.randn(8, 4)).pow(2).mean(), ema.update)
with torch.no_grad():
    ema.module(torch.randn(8, 4))

class Critic:
    def __init__(self):
        self.net, self.target = nn.Linear(4, 5), nn.Linear(4, 5)
        self.followers = list(self.target.parameters())
        self.target = copy.deepcopy(self.net)
    def loss(self):
        s = torch.randn(8, 4)
        return F.mse_loss(self.net(s), self.target(s).detach())
    @torch.no_grad()
    def soft_update(self):
        for t, s in zip(self.followers, self.net.parameters()):
            t.copy_(0.9 * t + 0.1 * s)  # <- GS549
critic = Critic()
loop([critic.net], critic.loss, critic.soft_update)
"""

TWINS_HEALTHY = """
online, predictor = net(4, 6, 6), nn.Linear(6, 6)
target = copy.deepcopy(online)  # its own statistics, in train mode; no predictor
def byol():
    x = torch.randn(8, 4)
    with torch.no_grad():
        goal = target(x)
    return F.mse_loss(predictor(online(x)), goal)
def follow():
    with torch.no_grad():
        for t, o in zip(target.parameters(), online.parameters()):
            t.lerp_(o, 0.1)
loop([online, predictor], byol, follow)

body, head = net(4, 6), nn.Linear(6, 2)  # a frozen reference, and a part that is frozen in both
reference = copy.deepcopy(nn.Sequential(body, head)).requires_grad_(False).eval()
average = copy.deepcopy(nn.Sequential(body, head)).eval()
body.requires_grad_(False)
def distilled():
    x = torch.randn(8, 4)
    with torch.no_grad():
        goal = reference(x) + average(x)
    return F.mse_loss(head(body(x)), goal)
def averaged():
    with torch.no_grad():
        for a, p in zip(average[1].parameters(), head.parameters()):
            a.mul_(0.9).add_(p, alpha=0.1)
loop([head], distilled, averaged)

class Shadow:  # an average outside of any module, beside a frozen teacher
    def __init__(self, model):
        self.model, self.kept = model, [p.detach().clone() for p in model.parameters()]
    def update(self):
        for kept, p in zip(self.kept, self.model.parameters()):
            kept.lerp_(p.detach(), 0.1)
small = nn.Linear(4, 5)
fixed = copy.deepcopy(small).requires_grad_(False)
shadow = Shadow(small)
loop([small], lambda: F.mse_loss(small(torch.ones(8, 4)), fixed(torch.ones(8, 4))), shadow.update)

learner = net(4, 6, 2)
follower = copy.deepcopy(learner).eval()
def buffers_too():
    for mine, own in zip(follower.state_dict().values(), learner.state_dict().values()):
        mine.copy_(own if mine.dtype == torch.long else 0.9 * mine + 0.1 * own)
def both():
    x = torch.randn(8, 4)
    with torch.no_grad():
        goal = follower(x)
    return F.mse_loss(learner(x), goal)
loop([learner], both, buffers_too)
loop([learner], both, lambda: follower.load_state_dict(learner.state_dict()))

swa = AveragedModel(learner, multi_avg_fn=get_ema_multi_avg_fn(0.9))
loop([learner], both, lambda: swa.update_parameters(learner))
with torch.no_grad():
    swa.eval()(torch.randn(8, 4))
"""

PAIRS = (
    (LOADED + LOADED_SICK, LOADED + LOADED_HEALTHY),
    (MODES + MODES_SICK, MODES + MODES_HEALTHY),
    (TWINS + TWINS_SICK, TWINS + TWINS_HEALTHY),
)
NAMES = ("loaded", "modes", "twins")


@pytest.mark.parametrize("text", [sick for sick, _ in PAIRS], ids=NAMES)
def test_each_is_told_at_its_line(session: Session, text: str) -> None:
    lines = enumerate((HEAD + text).splitlines(), 1)
    marked = [(rule[1], number) for number, one in lines if (rule := re.search(r"<- (\w+)", one))]
    assert sorted(told(session, text)) == sorted(marked)


@pytest.mark.parametrize("text", [healthy for _, healthy in PAIRS], ids=NAMES)
def test_what_only_looks_like_them_is_left_alone(session: Session, text: str) -> None:
    assert told(session, text) == []
