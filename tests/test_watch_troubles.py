"""What ``gradscope.watch`` does when something happens: when it says so, and what it finds."""

from __future__ import annotations

import math
import threading
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import gradscope
from gradscope import Row
from gradscope.model.rows import row_of

NAN = math.nan


class Fed(nn.Module):
    """Two parts whose gradients are what it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Parameter(torch.ones(1))
        self.b = nn.Parameter(torch.ones(1))

    def forward(self, a: float, b: float) -> torch.Tensor:
        """A loss with these derivatives."""
        return (self.a * a + self.b * b).sum()


def fed(norms: list[float], **how: Any) -> list[Row]:
    """The rows of a loop that feeds these norms to one part, and 1 to the other."""
    rows: list[Row] = []
    model = Fed()
    with gradscope.watch(model, every=1, to=rows.append, **how):
        for norm in norms:
            model.zero_grad()
            model(norm, 1.0).backward()
    return rows


ONES = [1.0] * 10
TOLD = {
    "ten times the median is in the history": ([*ONES, 10.0], {}),
    "more is not": ([*ONES, 10.5], {10: "the norm of a is 10.5, 10 times its median"}),
    "nine norms are too few": ([*ONES[1:], 1000.0], {}),
    "far below the median is nothing": ([*ONES, 0.001], {}),
    "the median, and not the mean": ([*ONES, *[9.0] * 9, 10.5], {19: "the norm of a"}),
    "the last hundred count": ([*ONES, *[5.0] * 100, 11.0], {}),
    "zero after ten that were not": ([*ONES, 0.0], {10: "the gradient of a has become zero"}),
    "zero after nine": ([*ONES[1:], 0.0], {}),
    "zero before": ([*ONES, 0.0, *ONES, *ONES, 0.0], {10: "the gradient of a has become zero"}),
    "a part that is mostly not used": ([0.0] * 10 + [5.0], {}),
    "not finite, at once": ([NAN], {0: "the gradient of a is not finite"}),
    "infinite": ([1.0, math.inf], {1: "the gradient of a is not finite"}),
    "told once": ([NAN] * 30, {0: "the gradient of a is not finite"}),
    "again after nine rows without": ([NAN, *ONES[1:], NAN], {0: "not finite"}),
    "again after ten": ([NAN, *ONES, NAN], {0: "not finite", 11: "not finite"}),
    "another kind soon after": ([*ONES, 20.0, NAN], {10: "the norm of a", 11: "not finite"}),
}


@pytest.mark.parametrize("case", TOLD)
def test_what_counts_as_trouble(case: str, capsys: pytest.CaptureFixture[str]) -> None:
    norms, told = TOLD[case]
    rows = fed(norms, keep=0)
    assert [row.step for row in rows if row.trouble] == list(told)
    for row in rows:
        assert told.get(row.step, "") in row.trouble
        assert not row.finding
    # Nobody has asked for a look, and the rows have it.
    assert not capsys.readouterr().err


def test_what_no_rule_explains_is_told_in_a_sentence() -> None:
    told = [row.finding for row in fed([*ONES, *[0.0] * 3], keep=1)]
    assert told == [*[""] * 12, "it is still so, and no rule names a cause"]


def test_several_parts_are_told_together() -> None:
    rows: list[Row] = []
    model = Fed()
    with gradscope.watch(model, every=1, to=rows.append, keep=0):
        for a, b in [*[(1.0, 2.0)] * 10, (30.0, 100.0), (30.0, NAN)]:
            model.zero_grad()
            model(a, b).backward()
    assert [row.trouble for row in rows[10:]] == [
        "the norm of b is 100, 50 times its median (and 1 other part)",
        "the gradient of b is not finite, nor is the loss",
    ]


def test_what_a_scaler_leaves_out_is_no_trouble_until_its_scale_is_below_1() -> None:
    rows: list[Row] = []
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    with gradscope.watch(model, every=1, to=rows.append, keep=0):
        for _ in range(5):
            optimizer.zero_grad()
            scaler.scale(model(torch.full((1, 2), math.inf)).sum()).backward()
            scaler.step(optimizer)
            scaler.update()
    assert [(row.scale, bool(row.trouble)) for row in rows] == [
        (4.0, False),
        (2.0, False),
        (1.0, False),
        (0.5, True),
        (0.25, False),
    ]


class Net(nn.Module):
    """Two layers, with a part that dies on demand and a line that may divide by zero."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first = nn.Linear(3, 8)
        self.last = nn.Linear(8, 1)

    def forward(self, x: torch.Tensor, is_bad: bool = False) -> torch.Tensor:
        """A loss."""
        y: torch.Tensor = self.last(torch.tanh(self.first(x))).pow(2).mean()
        if is_bad:
            y = y + (y - y.detach()).sqrt()  # <- here
        return y


HERE = next(
    number
    for number, line in enumerate(Path(__file__).read_text("utf-8").splitlines(), 1)
    if line.endswith("# <- " + "here")
)


def train(bad: set[int], steps: int = 20, every: int = 1, **how: Any) -> Any:
    """A loop with a guard, that comes to the bad line at these calls."""
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with gradscope.watch(model, every=every, **how) as block:
        for k in range(steps):
            optimizer.zero_grad()
            model(torch.randn(4, 3), k in bad).backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            if torch.isfinite(norm):
                optimizer.step()
    return block


def test_the_next_call_is_looked_at_in_full(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "run.jsonl"
    block = train(set(range(13, 40)), steps=40, every=10, to=log)
    rows = {row.step: row for row in map(row_of, log.read_bytes().splitlines()[1:])}
    # The loop leaves its steps out by itself, and they count all the same.
    assert list(rows) == [0, 10, 20, 22, 30]
    words = "the gradient of last is not finite (and then 1 other part), though the loss is"
    assert rows[20].trouble == words
    assert f"test_watch_troubles.py:{HERE}: GS102 Backward of `(y - y.detach()).sqrt()`" in (
        rows[22].finding
    )
    assert rows[22].report == "run.step-22.json.gz"
    assert [one.name for one in sorted(tmp_path.iterdir())] == ["run.jsonl", rows[22].report]
    report = gradscope.load(tmp_path / rows[22].report)
    assert [one.rule for one in report.findings][:1] == ["GS102"]
    told = capsys.readouterr().err
    assert told == (
        f"gradscope.watch: step 20: {rows[20].trouble}; step 22: {rows[22].finding}, "
        f"see {rows[22].report}\n"
    )
    assert not block.problems


def test_a_step_that_the_loop_leaves_out_is_one() -> None:
    rows: list[Row] = []
    train({15, 16, 20}, steps=25, every=1, to=rows.append)
    assert [row.step for row in rows] == list(range(25))


@pytest.mark.parametrize(
    ("every", "told"),
    [
        (1, "are not finite since step 13: in a second run, gradscope doctor --call 14 shows"),
        (10, "became so after step 10 and before step 21: a second run that looks at every step"),
    ],
)
def test_weights_that_are_spoiled_are_told_with_their_step(every: int, told: str) -> None:
    rows: list[Row] = []
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with gradscope.watch(model, every=every, to=rows.append):
        for k in range(30):
            optimizer.zero_grad()
            model(torch.randn(4, 3), k == 13).backward()
            optimizer.step()
    (finding,) = [row.finding for row in rows if row.finding]
    assert f"; the weights {told}" in finding
    assert [row.spoiled for row in rows if row.step < 13 or row.step == 13] == [0] * (
        14 if every == 1 else 2
    )
    assert rows[-1].spoiled == 4
    assert [row.first for row in rows if row.trouble] == ["last"]
    for one in model.parameters():
        assert one._post_accumulate_grad_hooks is None


def test_a_compiled_model_is_looked_at_without_a_warning() -> None:
    model: Any = torch.compile(nn.Linear(2, 1), backend="eager")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    rows: list[Row] = []
    with warnings.catch_warnings(), gradscope.watch(model, every=1, to=rows.append):
        warnings.simplefilter("error")
        for k in range(16):
            optimizer.zero_grad()
            model(torch.ones(3, 2) * (1e4 if k == 12 else 1)).sum().backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
    assert [row.step for row in rows if row.finding] == [13]


@pytest.mark.parametrize("keep", [1, 2])
def test_trouble_that_is_gone_and_how_many_looks_there_are(
    keep: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train({1, 16, 31}, steps=40, to=tmp_path / "run", keep=keep)
    rows = [row_of(line) for line in (tmp_path / "run").read_bytes().splitlines()[1:]]
    assert sum(bool(row.trouble) for row in rows) == 3
    assert [row.finding for row in rows if row.finding] == ["it is gone"] * keep
    assert len(list(tmp_path.glob("run.step-*.json.gz"))) == keep
    *_, last = told = capsys.readouterr().err.splitlines()
    kept = [row.report for row in rows if row.report]
    assert len(told) == keep
    assert last.endswith(f"it is gone, see {kept[-1]}; that was the last look")


def test_a_training_that_ends_before_the_look(capsys: pytest.CaptureFixture[str]) -> None:
    rows: list[Row] = []
    train({19}, to=rows.append)
    assert rows[-1].trouble
    assert capsys.readouterr().err.endswith("though the loss is; no call came after it\n")


def test_a_report_that_cannot_be_kept_is_told_and_no_more(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    (tmp_path / "run.step-15.json.gz").mkdir()
    train(set(range(13, 20)), to=log)
    rows = [row_of(line) for line in log.read_bytes().splitlines()[1:]]
    (found,) = [row for row in rows if row.finding]
    assert "GS102" in found.finding
    assert "run.step-15.json.gz" in found.finding
    assert not found.report
    assert len(rows) == 20


def test_tensorboard_gets_texts() -> None:
    texts: list[tuple[str, str, int]] = []

    class Writer:
        def add_scalar(self, name: str, value: float, step: int) -> None:
            pass

        def add_text(self, name: str, text: str, step: int) -> None:
            texts.append((name, text, step))

    train({13}, to=Writer())
    assert [(name, step) for name, _, step in texts] == [
        ("gradscope/trouble", 13),
        ("gradscope/finding", 15),
    ]


def test_where_another_thread_is_recorded_nothing_can_be_looked_at() -> None:
    rows: list[Row] = []
    begun, over = threading.Event(), threading.Event()

    def record() -> None:
        with gradscope.record():
            begun.set()
            over.wait()

    other = threading.Thread(target=record)
    other.start()
    begun.wait()
    try:
        block = train({13, 14, 15}, to=rows.append)
    finally:
        over.set()
        other.join()
    (finding,) = [row.finding for row in rows if row.finding]
    assert finding.startswith("could not be looked at: this block was not watched: another thread")
    assert len(rows) == 20
    assert not block.problems


def test_a_block_that_is_recorded_already_is_joined() -> None:
    rows: list[Row] = []
    found = []
    for keep in (0, 1):
        with gradscope.record(doctor=True, thorough=True) as run:
            train({13, 14, 15}, to=rows.append, keep=keep)
        found.append([str(one) for one in run.report().findings])
        assert run.report().observations is not None
    (finding,) = [row.finding for row in rows if row.finding]
    assert f":{HERE}: GS102" in finding
    # Who looks besides sees what it would.
    assert found[0] == found[1]


def test_other_hooks_of_steps_are_left_alone() -> None:
    """Torch does not bear that their number changes before it has called the last one."""
    from torch.optim import optimizer as optimizer_hooks

    rows: list[Row] = []
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    steps = []
    with gradscope.watch(model, every=1, to=rows.append):
        after = optimizer_hooks.register_optimizer_step_post_hook(lambda *_: steps.append(1))
        before = optimizer_hooks.register_optimizer_step_pre_hook(lambda *_: steps.append(1))
        for k in range(20):
            optimizer.zero_grad()
            (model(torch.randn(4, 3)) * (1e4 if k >= 12 else 1)).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        after.remove()
        before.remove()
    assert len(steps) == 40
    assert [row.step for row in rows if row.finding] == [14]
