"""What python and its packages keep for the whole process is as before, whatever of gradscope is
imported and used: the generators, hooks, filters, switches and the environment."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.conftest import python_says
from tests.fuzz.process import ROOT, environment, ran
from tests.looking import Session
from tests.own_functions import function

USES = """
import decimal, json, random, sys
import numpy
import torch
from tests.fuzz.fingerprint import _around, _random_state

random.seed(0)
numpy.random.seed(0)
decimal.getcontext().prec = 7

def state():
    return [*_around(), *_random_state({"numpy": numpy})]

def compare(name, use):
    before = state()
    result = use()
    left[name] = sorted(set(before) ^ set(state()))
    return result

def recorded():
    with gradscope.record(doctor=True, check=True) as run:
        y = (w * w).sum()
        y.backward()
        run.check((w * w).sum())
    return run.report()

net = torch.nn.Linear(2, 1)

def watched():
    optimizer = torch.optim.SGD(net.parameters())
    with gradscope.watch(net, to="run.jsonl"):
        net(torch.ones(1, 2)).sum().backward()
        optimizer.step()

left = {}
import gradscope

w = torch.ones(3, requires_grad=True)
powers = w.exp()
# What the program draws in its hooks it draws anew where a pass of ours runs them.
powers.register_hook(lambda g: g * random.random() * numpy.random.rand() * torch.rand(()))
loss = (w * powers / 3).sum()
report = compare("trace", lambda: gradscope.trace(loss))
compare("backward", lambda: gradscope.backward(loss, "randn", histograms=True))
compare("text", lambda: gradscope.backward(powers, "[random.random()] * 3"))
compare("explain", lambda: gradscope.explain(loss))
compare("memory", lambda: gradscope.memory(loss))
compare("doctor", lambda: gradscope.doctor(loss))
compare("record", recorded)
compare("watch", watched)
compare("diff", lambda: gradscope.diff(report, report).show())
compare("show", lambda: print(gradscope.explain(loss).show()))
for suffix in ("html", "svg", "dot", "json", "csv", "txt"):
    compare(suffix, lambda: report.save(f"saved.{suffix}"))
compare("load", lambda: gradscope.load("saved.json"))
json.dump(left, open("left.json", "w"))
"""


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """What was another one after each use, in a process that has used nothing of ours before."""
    folder: Path = tmp_path_factory.mktemp("uses")
    done = ran([sys.executable, "-c", USES], folder, environment())
    assert not done.returncode, done.stderr
    found: dict[str, list[str]] = json.loads((folder / "left.json").read_text())
    return found


@pytest.mark.long
def test_the_api_moves_nothing(left: dict[str, list[str]]) -> None:
    assert len(left) == 17
    assert {name: lines for name, lines in left.items() if lines} == {}


PROGRAM = """
import atexit, random, sys
import importlib.machinery as machinery
original = machinery.SourceFileLoader.exec_module
def around(self, module):
    return original(self, module)
machinery.SourceFileLoader.exec_module = around  # around ours, which waits for torch
random.seed(0)
import torch, warnings
from torch import nn
from tests.fuzz.fingerprint import tell, tell_at_exit
from tests.own_functions import function
tell_at_exit(globals())
torch.manual_seed(0)
w = torch.ones(3, requires_grad=True)
for step in range(3):
    (w * w.exp()).sum().backward()
TWICE
Twice.apply(w).sum().backward()
print(w.grad, len(warnings.filters), "sympy" in sys.modules)
m = nn.Linear(2, 1)
m(torch.ones(1, 2)).sum().backward()
print(random.random())
tell(globals())
def parameters():
    yield m.weight
    raise RuntimeError("no more parameters")
nn.utils.clip_grad_norm_(parameters(), 0.5)
print("goes on", m.weight.grad)
""".replace("TWICE", function("Twice", "x * 2", "grad * 2"))


@pytest.mark.long
def test_the_doctor_moves_nothing_and_the_program_ends_as_under_python(
    fresh: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program has seeded the generator before it imports torch, and draws at its end."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    path = str(fresh.write(PROGRAM))
    plain = ran([sys.executable, path], tmp_path)
    alone = plain.stdout.splitlines()
    watched = fresh.cli("doctor", "--run-on", "--color", "always", path, "-q")
    assert (watched.status, watched.err) == (plain.returncode, plain.stderr)
    assert [line for line in watched.out.splitlines() if line in alone] == alone
    assert "5 backward calls watched" in watched.out


PATCHES = """
import torch
from torch import nn
import gradscope

PLACES = [(torch.optim.Optimizer, "zero_grad"), (nn.utils, "clip_grad_norm_"),
          (torch.inference_mode, "__enter__"), (torch.amp.GradScaler, "scale"),
          (nn.Module, "register_full_backward_hook"), (torch.autograd, "backward")]

def around(original):
    def own(*args, **kwargs):
        return original(*args, **kwargs)
    return own

put = []
with gradscope.record(doctor=True):
    for owner, name in PLACES:
        put.append(around(vars(owner)[name]))
        setattr(owner, name, put[-1])
print(*(vars(owner)[name] is own for (owner, name), own in zip(PLACES, put)))
net = nn.Linear(2, 1)
net(torch.ones(1, 2)).sum().backward()
print(nn.utils.clip_grad_norm_(net.parameters(), 1.0) > 0, net.weight.grad is not None)
"""


def test_what_the_program_puts_around_ours_stays_and_works(session: Session) -> None:
    done = python_says(str(session.write(PATCHES)))
    assert (done.out, done.err) == ("True True True True True True\ntensor(True) True\n", "")
