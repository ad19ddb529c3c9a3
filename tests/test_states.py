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


@pytest.mark.parametrize("text", [LOADED + LOADED_SICK])
def test_each_is_told_at_its_line(session: Session, text: str) -> None:
    lines = enumerate((HEAD + text).splitlines(), 1)
    marked = [(rule[1], number) for number, one in lines if (rule := re.search(r"<- (\w+)", one))]
    assert sorted(told(session, text)) == sorted(marked)


@pytest.mark.parametrize("text", [LOADED + LOADED_HEALTHY])
def test_what_only_looks_like_them_is_left_alone(session: Session, text: str) -> None:
    assert told(session, text) == []
