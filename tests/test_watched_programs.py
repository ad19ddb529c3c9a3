"""``gradscope watch``, and the logs that ``gradscope show`` draws."""

from __future__ import annotations

import gc
import math
import re
import signal
from pathlib import Path

import pytest
import torch

from gradscope.model import history
from gradscope.model.history import History
from gradscope.model.rows import LogHead, ModuleRow, Row, line_of, row_of
from tests import forkserver
from tests.conftest import ROOT
from tests.fuzz.process import ran
from tests.hostile import acting
from tests.looking import Session

HEAD = """
import torch
from torch import nn
torch.manual_seed(0)
def steps(many, optimizer, loss):
    for k in range(many):
        optimizer.zero_grad()
        value = loss(k)
        value.backward()
        optimizer.step()
        print("loss", value.item())
"""

LAYERS = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(2, 3)
        self.layers = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3)])
    def forward(self, x):
        x = self.embed(x)
        for layer in self.layers:
            x = layer(x)
        return x.pow(2).sum()
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
"""

GAN = """
generator, critic = nn.Sequential(nn.Linear(2, 2)), nn.Sequential(nn.Linear(2, 1))
ours, theirs = (torch.optim.SGD(one.parameters(), lr=1e-2) for one in (generator, critic))
for _ in range(2):
    critic(generator(torch.ones(3, 2)).detach()).sum().backward()
    theirs.step()
    critic(generator(torch.ones(3, 2))).sum().backward()
    ours.step()
"""

LATE = """
steps(2, optimizer, lambda _: net(torch.ones(1, 2)))
other = nn.Linear(2, 1)
late = torch.optim.SGD(other.parameters(), lr=1e-2)
steps(3, late, lambda _: other(torch.ones(1, 2)).sum())
"""


def rows_in(path: Path) -> list[Row]:
    """The rows of a log."""
    _, *lines = path.read_bytes().splitlines()
    return [row_of(line) for line in lines]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (
            LAYERS + "steps(3, optimizer, lambda _: net(torch.ones(1, 2)))",
            ["embed", "layers.0", "layers.1"],
        ),
        # A wrapper, and one who holds the model, are no part of it.
        (
            LAYERS + "class Trainer:\n    def __init__(self): self.model = torch.compile(net, "
            "backend='eager')\nheld = Trainer()\n"
            "steps(3, optimizer, lambda _: net(torch.ones(1, 2)))",
            ["embed", "layers.0", "layers.1"],
        ),
        (GAN, ["critic/0", "generator/0"]),
        # Tensors that are in no module, and a model that is trained after another.
        (
            "w = torch.ones(3, requires_grad=True)\n"
            "steps(2, torch.optim.SGD([w]), lambda _: w.prod())",
            ["w"],
        ),
        (LAYERS + LATE, ["embed", "layers.0", "layers.1", "other/bias", "other/weight"]),
    ],
)
def test_models_are_found_by_their_optimizers(
    text: str, parts: list[str], session: Session
) -> None:
    done = session.told(HEAD + text, "watch --every 1 -o run.jsonl")
    assert not done.status, done.err
    rows = rows_in(session.folder / "run.jsonl")
    if text is GAN:  # the critic's and the generator's are one step
        assert [row.step for row in rows] == [0, 0, 1, 1]
    assert sorted({name for row in rows for name in row.modules}) == parts
    assert all(
        any(row.modules[name].applied for row in rows if name in row.modules) for name in parts
    )


def test_the_loss_is_the_number_that_a_call_begins_at(session: Session) -> None:
    session.write(
        HEAD + LAYERS + "steps(4, optimizer, lambda k: net(torch.ones(1, 2)) * (1 - k))\n"
        "scaler = torch.amp.GradScaler('cpu', init_scale=2.0**9)\n"
        "loss = net(torch.ones(1, 2))\nscaler.scale(loss).backward()\nscaler.step(optimizer)\n"
        "print('loss', loss.item())\n"
        # One that is changed afterwards, and one that is several numbers.
        "loss = net(torch.ones(1, 2))\nprint('loss', loss.item())\nloss.backward()\n"
        "loss.detach().zero_()\noptimizer.step()\n"
        "net.embed(torch.ones(3, 2)).backward(torch.ones(3, 3))\noptimizer.step()\n"
    )
    done = session.cli("watch", "program.py", "--every", "1", "-o", "run.jsonl")
    printed = [float(line.split()[1]) for line in done.out.splitlines() if line[:5] == "loss "]
    losses = [row.loss for row in rows_in(session.folder / "run.jsonl")]
    assert losses == [*printed[:6], None]


TWO_NETWORKS = """
maker, judge = nn.Linear(3, 4), nn.Linear(4, 1)
for_maker, for_judge = (torch.optim.SGD(one.parameters(), lr=1e-2) for one in (maker, judge))
first = {}
for k in range(9):
    made = maker(torch.randn(5, 3))
    for_judge.zero_grad()
    judged = judge(made.detach()).pow(2).mean() + 5
    judged.backward()
    for_judge.step()
    for_maker.zero_grad()
    fooled = 3 - judge(made).mean()
    fooled.backward()
    for_maker.step()
    first = first or {"judge": judged.item(), "maker": fooled.item()}
print(f"told {first['judge']:.4g} to {judged.item():.4g}")
print(f"told {first['maker']:.4g} to {fooled.item():.4g}")
"""


def test_the_losses_of_two_networks_are_not_one_series(session: Session) -> None:
    done = session.told(HEAD + TWO_NETWORKS, "watch --every 1")
    expected = [line[5:] for line in done.out.splitlines() if line.startswith("told ")]
    told = [line for line in done.out.splitlines() if line.startswith("loss ") and " to " in line]
    parts = [f"{one}/{name}" for one in ("maker", "judge") for name in ("weight", "bias")]
    assert told == [
        f"loss {expected[0]} of the steps that reach judge/weight, judge/bias",
        f"loss {expected[1]} of the steps that reach {', '.join(parts)}",
    ]


def test_one_line_a_row_where_nobody_sees_a_terminal(session: Session) -> None:
    session.write(HEAD + LAYERS + "steps(5, optimizer, lambda _: net(torch.ones(1, 2)))")
    done = session.cli("watch", "program.py", "--every", "2")
    told = [line for line in done.err.splitlines() if line.startswith("gradscope: step ")]
    assert [line.split()[2] for line in told] == ["0,", "2,", "4,"]
    assert re.search(r"loss \S+, norm \S+ \(applied \S+\), largest \S+ \S+$", told[0])
    assert done.out.count("\nlayers.1 ") == 1
    gc.collect()  # the model of before, which is no part of this run
    quiet = session.cli("watch", "program.py", "-q")
    assert not quiet.err
    assert "program.py · 5 rows" in quiet.out
    session.write(
        HEAD + LAYERS + "import io, sys; sys.stderr = io.StringIO(); sys.stderr.close()\n"
        "steps(5, optimizer, lambda _: net(torch.ones(1, 2)))"
    )
    session.cli("watch", "program.py", "--every", "2", "-o", "run.jsonl")
    assert len(rows_in(session.folder / "run.jsonl")) >= 3


@pytest.mark.parametrize(
    ("text", "arguments", "status", "told"),
    [
        ("raise SystemExit(7)", ("--every", "0"), 2, "0 is not in the range x>=1"),
        ("raise SystemExit(7)", ("-o", "run.csv"), 2, "name it run.jsonl"),
        ("raise SystemExit(7)", ("-o", "there/run.jsonl"), 2, "there is no folder"),
        ("raise SystemExit(7)", ("-o", "text.jsonl"), 2, "text.jsonl exists, and is no log"),
        ("raise SystemExit(7)", (), 7, ""),
        # What has no row costs no log of before.
        ("raise SystemExit(7)", ("-o", "old.jsonl"), 7, ""),
        ("def (", ("-o", "old.jsonl"), 1, "SyntaxError"),
        (HEAD + "1 / 0", ("-o", "old.jsonl"), 1, "ZeroDivisionError"),
        ("print(1)", (), 0, "nothing was watched"),
        (
            "import torch\ntorch.ones(1, requires_grad=True).sum().backward()",
            (),
            0,
            "watch a model",
        ),
        (HEAD + LAYERS + "optimizer.step()", (), 0, "no backward call brought a gradient"),
        (HEAD + LAYERS + "steps(1, optimizer, lambda _: net(torch.ones(1, 2))); 1 / 0", (), 1, ""),
    ],
)
def test_what_cannot_be_watched_is_said(
    text: str, arguments: tuple[str, ...], status: int, told: str, session: Session
) -> None:
    session.write("a text\n", "text.jsonl")
    old = session.folder / written(session.folder, row(1, a=1.0), name="old.jsonl")
    log = old.read_bytes()
    done = session.told(text, "watch", *arguments)
    assert (done.status, told in done.err) == (status, True), done.err
    assert (session.folder / "text.jsonl").read_text() == "a text\n"
    assert old.read_bytes() == log


def test_threads_that_train_at_once(session: Session) -> None:
    session.write(
        HEAD
        + """
import sys, threading
before, _ = sys.getswitchinterval(), sys.setswitchinterval(1e-6)
def train():
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for _ in range(20):
        model(torch.ones(8, 4)).sum().backward()
        optimizer.step()
train()
threads = [threading.Thread(target=train) for _ in range(3)]
for one in threads: one.start()
for one in threads: one.join()
sys.setswitchinterval(before)
"""
    )
    # The rows of before give way to the first new one.
    written(session.folder, row(1, a=1.0))
    done = session.cli("watch", "program.py", "--every", "1", "-q", "-o", "run.jsonl")
    assert done.status == 0
    assert "of backward calls that threads make at once no rows are written" in done.err
    rows = rows_in(session.folder / "run.jsonl")
    assert not any("a" in one.modules for one in rows)
    assert rows[-1].modules
    # A row has nothing of a step that another thread has made.
    assert all(part.norm for one in rows for part in one.modules.values() if part.applied)
    assert [one.call for one in rows] == sorted({one.call for one in rows})
    calls = [
        {name.rpartition("/")[0] for name, part in one.modules.items() if part.norm} for one in rows
    ]
    assert all(len(models) == 1 for models in calls)


def test_an_interrupt_ends_the_program_and_tells(tmp_path: Path) -> None:
    wait = "import os, time\nos.kill(os.getpid(), 2)\ntime.sleep(60)\n"
    text = HEAD + LAYERS + "steps(2, optimizer, lambda _: net(torch.ones(1, 2)))\n" + wait
    (tmp_path / "program.py").write_text(text)
    command = [forkserver.gradscope(), "watch", "program.py", "-o", "run.jsonl"]
    done = ran(command, tmp_path, PYTHONPATH=str(ROOT), XDG_CACHE_HOME=str(tmp_path))
    assert done.returncode == -signal.SIGINT
    assert "KeyboardInterrupt" in done.stderr
    assert "gradscope/" not in done.stderr
    assert "run.jsonl · 2 rows" in done.stdout


# ---------------------------------------------------------------------- what a log holds


def row(step: int, loss: float | None = None, **norms: float | None) -> Row:
    """One row whose parts have these norms."""
    parts = {
        name: ModuleRow(
            norm, parameters=2, nonfinite=int(norm is not None and not math.isfinite(norm))
        )
        for name, norm in norms.items()
    }
    return Row(step=step, call=step + 1, loss=loss, norm=1.0, modules=parts)


def test_nothing_large_is_lost_in_few_columns() -> None:
    norms = torch.rand(1_000, generator=torch.Generator().manual_seed(0)).tolist()
    norms[501], norms[777], norms[778] = 1e6, math.nan, 1e9
    kept = History(most=10)
    for step, norm in enumerate(norms):
        kept.put(row(step, float(step), a=norm))
    assert len(kept.spans) <= 10
    assert (kept.rows, kept.spans[0].first, kept.spans[-1].last) == (1_000, 0, 999)
    for span in kept.spans:
        own = norms[span.first : span.last + 1]
        info = span.parts["a"]
        is_bad = any(math.isnan(one) for one in own)
        assert info.state == ("non-finite" if is_bad else "finite")
        assert is_bad or info.norm == max(own)
        assert (span.lowest, span.highest) == (span.first, span.last)
    assert kept.bad == (777, ("a",))


def written(folder: Path, *rows: Row, name: str = "run.jsonl") -> str:
    """A log of these rows."""
    lines = [line_of(LogHead("0", 1, None)), *map(line_of, rows)]
    (folder / name).write_bytes(b"".join(lines))
    return name


def test_four_things_are_four_signs(session: Session) -> None:
    rows = [row(k, 2.0 - k / 10, a=[1, 0, None, math.inf, 5][k], b=1.0) for k in range(5)]
    path = written(session.folder, *rows)
    done = session.cli("show", path, "--width", "90")
    assert "run.jsonl · 5 rows · steps 0 to 4 · 2 parts" in done.out
    assert re.search(r"^a +▂0∅✖▇ +5 ", done.out, re.MULTILINE), done.out
    assert "✖ first not finite at step 3, in a" in done.out
    session.cli("show", path, "-o", "run.html", "--width", "90")
    page = (session.folder / "run.html").read_text()
    for sign in "▂0∅✖▇":
        assert sign in page


def test_a_log_that_was_cut_off_is_read_up_to_there(session: Session) -> None:
    path = session.folder / written(session.folder, *(row(k, a=1.0) for k in range(3)))
    whole = path.read_bytes()
    path.write_bytes(whole[:-9])
    done = session.cli("show", "run.jsonl")
    assert "2 rows" in done.out
    assert "line 4, the last one, was not written to its end" in done.out
    head, *lines = whole.splitlines(keepends=True)
    for broken, told in (
        (head + lines[0][:-9] + b"\n" + lines[1], "line 2 is no row of a log"),
        (head + lines[0].replace(b'"step":0', b'"step":"soon"'), "line 2 is no row of a log"),
        (head.replace(b'"layout":1', b'"layout":2'), "layout 2"),
        (head[:20], "its first line is broken"),
        (b"", "is empty: no training has written to it"),
    ):
        path.write_bytes(broken)
        done = session.cli("show", "run.jsonl")
        assert (done.status, told in done.err) == (2, True), done.err
        assert len(done.err.splitlines()) == 2
    path.write_bytes(head)
    assert session.cli("show", "run.jsonl").out == "run.jsonl: no rows\n"
    path.write_bytes(whole)
    assert "--max-size" in session.cli("show", "run.jsonl", "--max-size", "100").err
    assert "not svg" in session.cli("show", "run.jsonl", "-o", "run.svg").err
    assert "ignored: --depth" in session.cli("show", "run.jsonl", "--depth", "2").err


HOSTILE = "</script><img src=x onerror=alert(1)>\x1b[31m[/red]\u202e\n\"'é😀"


def test_hostile_names_are_only_text(session: Session) -> None:
    hostile = Row(
        step=1, call=2, norm=1.0, loss=1.0, modules={HOSTILE: ModuleRow(1.0, parameters=1)},
        finding=HOSTILE, report="javascript:alert(1)",
    )  # fmt: skip
    path = written(session.folder, hostile, name="run.jsonl")
    done = session.cli("show", path, "-o", "run.html")
    page = (session.folder / "run.html").read_text()
    assert not acting(page)
    assert "<img" not in page
    assert "href=" not in page
    assert "</script>" not in page
    assert not acting(session.cli("show", path).out + done.err)


def test_of_many_parts_so_many_are_kept() -> None:
    kept = History()
    for step in range(3):
        kept.put(row(step, **{f"{step}.{k}": 1.0 for k in range(history.MOST_PARTS)}))
    assert len(kept.names) == history.MOST_PARTS
    assert max(len(span.parts) for span in kept.spans) <= history.MOST_PARTS
