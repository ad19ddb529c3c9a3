"""Programs of several ranks: one report, no rank harmed, and none that hangs.

Every rank is a process of its own that talks to the others by gloo.  Torch's own numbers are the
oracle: each rank's gradient as it is without any other rank.
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch
from torch import nn

from gradscope.errors import ReportError
from gradscope.model import storage
from gradscope.model.ranks import OneRank, RankPasses, Ranks
from gradscope.model.report import Report
from gradscope.model.rows import Row, row_of
from gradscope.ranks import Job
from gradscope.ranks.collected import Collected
from gradscope.ranks.looks import look_of
from tests import forkserver
from tests.looking import Done, Session
from tests.ranks.built import on_ranks, parameter, with_ranks
from tests.ranks.running import PROGRAM, run
from tests.reports import small
from tests.test_diagnose import observed, plain


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copy(PROGRAM, tmp_path / "train.py")
    return tmp_path


def watched(folder: Path, words: str, kind: str = "", **kwargs: Any) -> list[Done]:
    command, *options = words.split()
    return run(folder, [command, "train.py", *options, "--", kind], **kwargs)


Asked = Callable[..., Path]


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Asked:
    """The folder in which a command has left its reports; the same ranks are asked once."""

    @cache
    def ask(words: str, kind: str = "", size: int = 2) -> Path:
        folder = tmp_path_factory.mktemp("ranks")
        shutil.copy(PROGRAM, folder / "train.py")
        watched(folder, words, kind, size=size)
        return folder

    return ask


def ranks_of(path: Path) -> Ranks:
    ranks = storage.load(path).ranks
    assert ranks is not None
    return ranks


def findings(path: Path) -> dict[str, Any]:
    return {one.rule: one for one in storage.load(path).findings}


# ---------------------------------------------------------------- nobody is harmed


@pytest.mark.long
@pytest.mark.parametrize(
    ("command", "size"),
    [("backward --run-on", 2), ("doctor", 4), ("trace --run-on", 2), ("watch --every 1", 2)],
)
def test_what_the_ranks_compute_stays_the_same(folder: Path, command: str, size: int) -> None:
    plain = run(folder, ["-c", "exec(open('train.py').read())"], size, [forkserver.python()])
    name = "r.jsonl" if command[:5] == "watch" else "r.json"
    seen = watched(folder, f"{command} -q -o {name}", size=size)
    told = [[line for line in one.out.splitlines() if line.startswith("rank")] for one in seen]
    assert told == [one.out.splitlines() for one in plain]
    assert [one.status for one in seen] == [0] * size


def test_a_child_that_a_rank_forks_ends_as_ever(folder: Path) -> None:
    for one in watched(folder, "backward --run-on -q", "child"):
        assert "child -15" in one.out
        assert one.err == ""


@pytest.mark.parametrize(
    "kind",
    [
        *("static", "destroy", "accumulate", "tensor", "pipeline", "schedule", "first-alone"),
        *("fsdp", "fsdp-accumulate", "fsdp1", "fsdp1-named"),
    ],
)
def test_a_healthy_program_has_no_findings(folder: Path, kind: str) -> None:
    first, second = watched(folder, "doctor", kind)
    assert "no findings" in first.out, first.out
    is_silent = kind in ("pipeline", "schedule", "first-alone")
    assert second.out.count("\n") == (not is_silent), second.out  # the program's own line


def test_models_of_different_groups_are_not_expected_to_be_the_same(folder: Path) -> None:
    first, *_ = watched(folder, "doctor", "groups", size=4)
    assert "no findings" in first.out, first.out


# ---------------------------------------------------------------- one report


@pytest.mark.parametrize(
    ("words", "kind", "statuses", "said"),
    [
        (
            *("backward", "", (0, 0)),
            ("‖g‖ rank 0  ‖g‖ rank 1  ‖.grad‖", "2 ranks; the graph is that of rank 0"),
        ),
        # Programs that fail before backward.
        ("doctor", "early", (1, 1), ("2 ranks; rank 0 has no graph of its own",)),
        # A rank that makes no call lets nobody wait.
        (
            *("backward --wait 50", "idle-destroy", (2, 0)),
            ("● out.weight", "rank 0: no autograd graph"),
        ),
        # A rank that fails leaves the telling to rank 0, and one that is killed is missed.
        ("doctor --for 30s", "apart", (0, 1), ("rank 1: ValueError: rank 1 is ill",)),
        ("doctor --wait 1", "kill 1", (1, -9), ("rank 1 did not report within 1 s", "Connection")),
    ],
)
def test_all_ranks_are_told_by_one(
    folder: Path, words: str, kind: str, statuses: tuple[int, int], said: tuple[str, ...]
) -> None:
    first, second = watched(folder, words, kind)
    assert [part for part in said if part not in first.out + first.err] == []
    assert (second.out, first.status, second.status) == ("", *statuses)


@pytest.mark.parametrize("size", [2, 4])
def test_the_numbers_are_those_of_torch(asked: Asked, size: int) -> None:
    folder = asked("backward -o r.json", size=size)
    expected = [_alone(rank) for rank in range(size)]
    for one in ranks_of(folder / "r.json").parameters:
        gradients = [of_rank[one.name] for of_rank in expected]
        assert [at.rank for at in one.local] == list(range(size))
        for at, gradient in zip(one.local, gradients, strict=True):
            assert float(at.gradient.norm or 0) == pytest.approx(float(gradient.norm()), rel=1e-5)
        (after,) = one.after
        mean = sum(gradients, torch.zeros(())) / size
        assert float(after.gradient.norm or 0) == pytest.approx(float(mean.norm()), rel=1e-5)


def _alone(rank: int) -> dict[str, torch.Tensor]:
    """The gradients that a rank's first batch gives where there is no other rank."""
    torch.manual_seed(0)
    names = ("first", "second", "out")
    parts = {
        name: torch.nn.Linear(8 if name == "out" else 4, 1 if name == "out" else 8)
        for name in names
    }
    torch.manual_seed(rank)
    x = torch.randn(16, 4)
    hidden = torch.relu(parts["first"](x) + parts["second"](x))
    (parts["out"](hidden) - x.sum(1, keepdim=True)).square().mean().backward()
    return {
        f"{name}.{part}": parameter.grad
        for name, module in parts.items()
        for part, parameter in module.named_parameters()
        if parameter.grad is not None
    }


def test_each_ranks_gradients_are_on_the_graph(asked: Asked) -> None:
    folder = asked("backward -o r.json", size=2)
    (other,) = ranks_of(folder / "r.json").passes
    assert other.rank == 1
    (theirs,) = storage.load(folder / "r.rank1.json").passes
    assert other.passes == (msgspec.structs.replace(theirs, origin=other.passes[0].origin),)


def test_ranks_whose_tensors_have_other_shapes_tell_no_values(folder: Path) -> None:
    watched(folder, "backward -o r.json", "batches")
    (other,) = ranks_of(folder / "r.json").passes
    assert other.has_other_shapes
    assert not any(info.values for info in other.passes[0].gradients)


def test_names_leave_out_wrappers_and_nothing_of_the_program(folder: Path) -> None:
    (folder / "names.py").write_text(WRAPPED)
    run(folder, ["backward", "names.py", "-o", "r.json"])
    names = {one.name for one in ranks_of(folder / "r.json").parameters}
    assert names == {
        f"{part}.{kind}" for part in ("first", "module") for kind in ("weight", "bias")
    }


WRAPPED = """
import torch
from torch import nn
from torch.distributed import init_process_group
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from torch.distributed.fsdp import fully_shard


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = checkpoint_wrapper(nn.Linear(4, 4))
        self.module = nn.Linear(4, 1)

    def forward(self, x):
        return self.module(self.first(x))


init_process_group("gloo")
net = Net()
fully_shard(net.first)
fully_shard(net)
net(torch.randn(3, 4)).sum().backward()
"""


@pytest.mark.parametrize(("kind", "size"), [("fsdp", 2), ("hsdp", 4)])
def test_the_gradient_of_a_parameter_is_summed_over_its_shards(
    asked: Asked, kind: str, size: int
) -> None:
    """Of a shard that several ranks hold, once."""
    folder = asked("backward -o r.json", kind, size)
    expected = [_alone(rank) for rank in range(size)]
    for one in ranks_of(folder / "r.json").parameters:
        mean = sum((of_rank[one.name] for of_rank in expected), torch.zeros(())) / size
        assert float(one.whole or 0) == pytest.approx(float(mean.norm()), rel=1e-5)


def test_the_whole_of_a_tensor_is_not_told_where_a_rank_is_silent(asked: Asked) -> None:
    folder = asked("backward -o r.json", "fsdp")
    own = storage.load(folder / "r.rank0.json")
    collected = Collected(own, look_of(own, Job(0, 2), "", 1), 2)
    ranks = collected.report(10.0).ranks
    assert ranks is not None
    assert [one.whole for one in ranks.parameters] == [None] * len(ranks.parameters)


def test_distributed_tensors_are_read_where_they_lie(folder: Path) -> None:
    watched(folder, "backward -o r.json", "tensor")
    report = storage.load(folder / "r.json")
    assert not any("internal error" in note for note in report.notes)
    found = {one.name: one for one in ranks_of(folder / "r.json").parameters}
    parts = [float(at.gradient.norm or 0) for at in found["first.weight"].local]
    whole = float(found["first.weight"].whole or 0)
    assert sum(part**2 for part in parts) ** 0.5 == pytest.approx(whole, rel=1e-5)
    assert found["out.bias"].whole is None  # the same on all ranks


def test_gradients_that_are_not_averaged_yet_are_told_apart(folder: Path) -> None:
    watched(folder, "backward -o r.json", "accumulate")
    assert all(len(one.after) == 2 for one in ranks_of(folder / "r.json").parameters)


def test_memory_is_told_by_rank(folder: Path) -> None:
    first, _ = watched(folder, "memory", "batches")
    rows = [line.split()[:2] for line in first.out.splitlines()]
    assert ["0", "576"] in rows
    assert ["1", "144"] in rows


def test_a_path_that_one_rank_cannot_write_costs_the_others_nothing(folder: Path) -> None:
    (folder / "out0").mkdir()
    (folder / "out1").write_text("a file")
    words = f'exec {forkserver.gradscope()} backward train.py -o "out$RANK/r.json"'
    first, second = run(folder, ["-c", words], command=["bash"])
    assert "rank 1: " in first.err
    assert "there is no folder" in first.err
    assert ranks_of(folder / "out0" / "r.json").each[1].state == "told"
    assert (first.status, second.status, second.err) == (0, 0, "")


@pytest.mark.parametrize("changes", [["-u", "WORLD_SIZE"], ["-u", "RANK"], ["RANK=zero"]])
def test_half_of_what_a_launcher_says_is_none(session: Session, changes: list[str]) -> None:
    code = "import torch; torch.ones(2, requires_grad=True).sum().backward()"
    command = ["env", *changes, forkserver.gradscope(), "backward", "-c", code]
    (one,) = run(session.folder, [], 1, command)
    assert "1 leaf" in one.out
    assert "rank" not in one.out
    assert (one.status, one.err) == (0, "")


def test_without_a_process_group_each_rank_tells_its_own(folder: Path) -> None:
    for rank, one in enumerate(watched(folder, "backward -o r.json --quiet", "alone")):
        notes = storage.load(folder / ("r.json" if not rank else "r.rank1.json")).notes
        assert (
            f"rank {rank} of 2: this process only, because the program made no process group"
            in notes
        )
        assert one.status == 0


# ---------------------------------------------------------------- how far ranks are apart


def _saved(session: Session, report: Report) -> str:
    (session.folder / "saved.json").write_bytes(storage.encode(report))
    return "saved.json"


def test_a_picture_says_how_far_the_ranks_are_apart(session: Session) -> None:
    shown = session.cli("show", _saved(session, on_ranks()), "--format", "dot").out
    assert "‖g‖ 16.04 … 48.13 over 4 ranks, not in the graph of rank 3" in shown


# ---------------------------------------------------------------- what the doctor compares


def test_nan_of_one_rank_is_told_once_and_with_its_rank(folder: Path) -> None:
    for kind in ("nan", "fsdp-nan"):
        first, second = watched(folder, "doctor -o r.json", kind)
        (finding,) = storage.load(folder / "r.json").findings
        assert (finding.rule, finding.ranks, finding.step) == ("GS105", (1,), 2)
        assert "rank 0 got it when the gradients were averaged" in finding.evidence
        assert "· rank 1 · train.py" in first.out
        assert (first.status, second.status) == (1, 0)


@pytest.mark.parametrize(
    ("kind", "rule", "severity", "said"),
    [
        ("unused", "GS701", "information", "second.bias, second.weight get no gradient on rank 1"),
        ("unused-error", "GS701", "warning", "second.bias, second.weight get no gradient on rank"),
        ("drift", "GS702", "error", "out.weight is not the same on all ranks"),
        ("bypass", "GS702", "warning", "out.bias, out.weight, second.bias"),
        ("calls", "GS703", "error", "Rank 1 made 3 backward calls, rank 0 made 4"),
    ],
)
def test_the_doctor_compares_ranks(
    folder: Path, kind: str, rule: str, severity: str, said: str
) -> None:
    watched(folder, "doctor --wait 3 -o r.json", kind)
    finding = findings(folder / "r.json")[rule]
    assert finding.severity == severity
    assert said in finding.message
    assert finding.location is not None
    assert finding.location.file.endswith("train.py")


# ---------------------------------------------------------------- ranks that die, or are late


@pytest.mark.parametrize(
    ("kind", "status"), [("idle", 1), ("idle-exit", 3), ("idle-destroy", 1), ("idle-more", 1)]
)
def test_what_others_found_is_told_where_rank_0_saw_nothing(
    folder: Path, kind: str, status: int
) -> None:
    first, second = watched(folder, "doctor -o r.json", kind)
    (finding,) = storage.load(folder / "r.json").findings
    assert (finding.rule, finding.ranks) == ("GS101", (1,))
    out = " ".join(first.out.split())
    assert "2 ranks; rank 0 has no graph of its own" in out
    assert ("rank 0: no autograd graph: no tensor" in out) == (status == 1)
    assert (first.status, second.status, second.out) == (status, 0, "")


def test_ranks_that_are_interrupted_are_not_compared_in_the_middle_of_a_step(folder: Path) -> None:
    first, second = watched(folder, "doctor --steps all -o r.json", "interrupt")
    assert "GS702" not in findings(folder / "r.json")
    assert (first.status, second.status, second.out) == (-2, -2, "")


def test_a_program_that_catches_everything_still_ends_by_the_signal(folder: Path) -> None:
    for one in watched(folder, "doctor --steps all", "catching"):
        assert one.status == -15


@pytest.mark.parametrize("has_agent", [True, False])
def test_where_rank_0_is_killed_another_tells(folder: Path, has_agent: bool) -> None:
    first, second = watched(folder, "doctor --wait 1 -o r.json", "kill 0", has_agent=has_agent)
    assert first.status == -9
    assert "GS410" in second.out
    gone = "rank 0 did not report" if has_agent else "the process group's store did not answer"
    assert gone in second.out
    assert ("2 ranks" in second.out) == has_agent  # else nobody was heard
    assert storage.load(folder / "r.rank1.json").findings


@pytest.mark.parametrize("rank", [0, 1])
def test_a_rank_that_sleeps_costs_no_more_than_the_wait(folder: Path, rank: int) -> None:
    told = watched(folder, "backward --wait 1 --call 2 -o r.json", f"sleep {rank}")
    assert [one.status for one in told] == [0, 0]
    assert {one.state for one in ranks_of(folder / "r.json").each} == {"told"}


# ---------------------------------------------------------------- ranks that no launcher named


def test_ranks_that_only_the_program_knows_are_told_in_one_report(folder: Path) -> None:
    first, second = watched(folder, "doctor -o r.json", "nan", is_launched=False)
    assert "GS105" in first.out
    assert "rank 0 got it when the gradients were averaged" in first.out
    assert (second.out, first.status, second.status) == ("", 1, 0)
    assert storage.load(folder / "r.rank1.json").findings


@pytest.mark.parametrize("unwatched", [0, 1])
@pytest.mark.parametrize("words", ["backward --wait 1", "doctor --steps 2 --wait 1"])
def test_a_rank_without_gradscope_is_not_stopped_and_named(
    folder: Path, words: str, unwatched: int
) -> None:
    told = watched(folder, words, is_launched=False, unwatched=[unwatched])
    assert [one.out.splitlines()[0].split()[:2] for one in told] == [["rank", "0"], ["rank", "1"]]
    out = " ".join(told[1 - unwatched].out.split())
    assert f"rank {unwatched} was started without gradscope and not watched" in out
    assert told[unwatched].status == 0
    assert "Traceback" not in told[unwatched].err


# ---------------------------------------------------------------- a training that is watched


def rows_of(folder: Path) -> list[Row]:
    return [row_of(line) for line in (folder / "run.jsonl").read_bytes().splitlines()[1:]]


def test_shards_are_added_up_to_the_norms_of_the_whole(folder: Path) -> None:
    watched(folder, "watch --every 1 -q -o run.jsonl", "fsdp")
    torch.manual_seed(0)
    net = nn.ModuleDict(
        {"first": nn.Linear(4, 8), "second": nn.Linear(4, 8), "out": nn.Linear(8, 1)}
    )
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    states = [torch.Generator().manual_seed(rank) for rank in range(2)]
    rows = rows_of(folder)
    assert [row.step for row in rows] == list(range(5))
    for row in rows:
        optimizer.zero_grad()
        losses = []
        for state in states:
            x = torch.randn(16, 4, generator=state)
            y = net["out"](torch.relu(net["first"](x) + net["second"](x)))
            losses.append((y - x.sum(1, keepdim=True)).square().mean())
        (sum(losses) / 2).backward()
        before = {name: [p.detach().clone() for p in one.parameters()] for name, one in net.items()}
        optimizer.step()
        for name, layer in net.items():
            part = next(one for key, one in row.modules.items() if key.endswith(name))
            gradients = [one.grad for one in layer.parameters() if one.grad is not None]
            whole = pytest.approx(math.hypot(*(one.norm().item() for one in gradients)), rel=1e-4)
            assert part.norm == whole
            assert part.applied == whole
            moved = zip(layer.parameters(), before[name], strict=True)
            change = math.hypot(*((new.detach() - old).norm().item() for new, old in moved))
            weight = math.hypot(*(old.norm().item() for old in before[name]))
            assert part.update == pytest.approx(change / weight, rel=1e-3)
        assert [one.loss for one in row.ranks.values()] == pytest.approx(
            [one.item() for one in losses], rel=1e-4
        )


def test_trouble_of_one_rank_is_told_with_its_rank(folder: Path) -> None:
    code = "import runpy, sys; sys.argv[1:] = ['sick']; runpy.run_path('train.py')"
    first, second = run(folder, ["-c", code], 2, [forkserver.python()])
    assert (first.status, second.status, second.err) == (0, 0, "")
    calls = {row.call: row for row in rows_of(folder)}
    trouble = "the gradient of out is not finite (and 2 other parts), nor is the loss"
    row = calls[2]
    assert (row.nonfinite, row.ranks["0"].nonfinite, row.ranks["1"].nonfinite) == (6, 0, 6)
    assert math.isfinite(row.loss or math.nan)
    assert (row.ranks["1"].trouble, row.ranks["1"].first) == (trouble, "out")
    found = calls[4].ranks["1"]
    assert ": GS1" in found.finding
    assert "train.py:" in found.finding
    assert found.report == "run.step-1.rank1.json.gz"
    assert storage.load(folder / found.report).findings
    assert f"step 1: rank 1: {trouble}\n" in first.err
    assert f"step 1: rank 1: {found.finding}, see {found.report}\n" in first.err
    assert not any(row.silent for row in calls.values())


def test_a_rank_that_tells_nothing_is_said(folder: Path) -> None:
    first, _ = watched(folder, "watch --every 1 -q -o run.jsonl", unwatched=[1])
    assert "rank 1 told nothing: is the training watched there, too?" in first.err
    assert [(row.silent, list(row.ranks)) for row in rows_of(folder)] == [(1, ["0"])] * 5


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("check", "gradscope check makes calls of its own"),
        ("depends --on w", "gradscope depends makes calls of its own"),
        ("explain", "gradscope explain makes calls of its own"),
        ("backward --gradient 2.0", "--gradient makes calls of its own"),
        ("backward --root loss", "--root makes calls of its own"),
    ],
)
def test_what_needs_all_ranks_is_refused_in_two_lines(folder: Path, words: str, said: str) -> None:
    first, second = watched(folder, words)
    assert said in first.err
    assert first.err.count("\n") == 2
    assert first.status == 2
    assert (second.out, second.err, second.status) == ("", "", 0)


def test_programs_are_not_compared_in_every_rank(folder: Path) -> None:
    for one in run(folder, ["diff", "train.py", "train.py"]):
        assert "diff starts programs itself" in one.err
        assert one.status == 2


# ---------------------------------------------------------------- many ranks


def test_of_many_ranks_the_smallest_the_largest_and_the_odd_ones_are_kept(folder: Path) -> None:
    watched(folder, "backward -o r.json")
    report = storage.load(folder / "r.rank0.json")
    collected = Collected(report, look_of(report, Job(0, 100), "", 1), 100)
    for rank in range(1, 100):
        collected.add(look_of(_scaled(report, rank), Job(rank, 100), "", 1))
    ranks = collected.report(10.0).ranks
    assert ranks is not None
    assert [*collected.wanted] == [1, 2, 3]
    for one in ranks.parameters:
        assert {0, 99, 50} <= {at.rank for at in one.local}
        assert len(one.local) <= 6
    saved = storage.encode(collected.report(10.0))
    assert storage.decode(saved).ranks == ranks


def _scaled(report: Report, rank: int) -> Report:
    """The report of a rank whose gradients are larger; on rank 50 not finite."""
    data = json.loads(storage.encode(report))
    for entry in data["passes"][0]["gradients"]:
        if entry["state"] == "finite" and rank == 50:
            entry.update(state="non-finite", norm="NaN", nan=1, values=None)
        elif entry["state"] == "finite":
            entry["norm"] = float(entry["norm"]) * (1 + rank)
    data["passes"][0]["gradients"] = [
        {key: value for key, value in entry.items() if value is not None}
        for entry in data["passes"][0]["gradients"]
    ]
    return storage.decode(json.dumps(data).encode())


@pytest.mark.parametrize(
    "other", [OneRank(1, fault="internal error: KeyError"), OneRank(1, "not told")]
)
def test_no_findings_are_those_of_the_ranks_that_told(other: OneRank, session: Session) -> None:
    report = with_ranks(observed(plain()), each=(OneRank(0, calls=3), other))
    told = session.cli("doctor", _saved(session, report))
    assert other.fault or "no findings on the 1 of 2 ranks that told" in told.out
    assert told.status == 4


def test_a_rank_whose_look_failed_says_so() -> None:
    collected = Collected(plain(), look_of(plain(), Job(0, 2), "", 1), 2)
    collected.add(look_of(None, Job(1, 2), "internal error: KeyError", 1, is_fault=True))
    report = collected.report(10.0)
    assert "rank 1: internal error: KeyError" in report.notes
    assert report.ranks is not None
    assert report.ranks.faults == ["rank 1: internal error: KeyError"]
    assert report.ranks.other_graphs == ()


def _with(**changes: Any) -> Report:
    report = with_ranks(plain(), parameter())
    assert report.ranks is not None
    return msgspec.structs.replace(report, ranks=msgspec.structs.replace(report.ranks, **changes))


@pytest.mark.parametrize(
    "report",
    [
        _with(size=1 << 40),
        _with(shown=2),
        _with(each=(OneRank(0), OneRank(0))),
        _with(parameters=(parameter(local={5: 1.0}),)),
        _with(parameters=(parameter(missing=(9,)),)),
        _with(other_graphs=(-1,)),
        _with(passes=(RankPasses(0, plain().passes),)),
        _with(passes=(RankPasses(2, plain().passes),)),
        _with(passes=(RankPasses(1, plain().passes),) * 2),
        _with(passes=(RankPasses(1, ()),)),
        _with(passes=(RankPasses(1, small().passes),)),
    ],
)
def test_a_forged_table_of_ranks_is_refused(report: Report) -> None:
    with pytest.raises(ReportError, match="ranks"):
        storage.decode(storage.encode(report))
