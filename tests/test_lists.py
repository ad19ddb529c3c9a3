"""Lanes, tables, csv, strips of what repeats, and lists of the largest: for graphs of any size."""

from __future__ import annotations

import csv
import io
import re
import sys
import time
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
import torch
from hypothesis import given
from rich.cells import cell_len

from gradscope.errors import GradscopeError
from gradscope.formats import Column
from gradscope.model import storage
from gradscope.model.report import GradientInfo, Report
from gradscope.render import Options, render
from gradscope.simplify import Folding
from tests.goldens import compare
from tests.looking import Session
from tests.reports import (
    CASES,
    blocks_of_functions,
    decaying,
    doublings,
    functions,
    small,
    transformer,
)
from tests.test_simplify import programs

LARGE = {
    "transformer": transformer(12),
    "deep-transformer": transformer(48),
    "rnn": decaying(500, last=0.0),
    "functions": functions(),
    "blocks": blocks_of_functions(),
}


def drawn(report: Report, format: str, options: Options | None = None) -> str:
    text = render(report, format, options)
    assert isinstance(text, str)
    return text


def widest(text: str) -> int:
    return max(map(cell_len, text.splitlines()))


# ---------------------------------------------------------------------- large graphs


@pytest.mark.parametrize("width", [60, 80, 200])
@pytest.mark.parametrize("name", LARGE)
def test_a_large_graph_fits_forty_lines_and_names_the_extremes(name: str, width: int) -> None:
    text = drawn(LARGE[name], "tree", Options(width=width))
    assert text.count("\n") <= 40
    assert widest(text) <= width
    if name != "functions":
        assert re.search(r"(largest|max)\s[\d.]", text) and re.search(
            r"(smallest|min)\s[\d.]", text
        )


@pytest.mark.parametrize(("width", "unicode"), [(60, True), (80, True), (80, False)])
@pytest.mark.parametrize("name", LARGE)
def test_large_graphs_on_the_terminal(name: str, width: int, unicode: bool) -> None:
    text = drawn(LARGE[name], "tree", Options(width=width, unicode=unicode))
    assert unicode or text.isascii()
    compare(f"large/{name}-{width}{'' if unicode else '-ascii'}.txt", text)


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        (["finite 1", "finite 10", "finite 100"], ["▁▅█", "largest 100 in round 1", "smallest 1 "]),
        (["finite 2"] * 3, ["▅▅▅", "each 2"]),
        (["finite 1", "NaN", "zero"], ["✖", "✖ not finite in 1 of 3, first in round 2"]),
        (["finite 1", "zero", "zero"], ["00", "0 in 2 of 3, first in round 2", "each 1"]),
        (["none"] * 3, ["∅∅∅", "no grad in all"]),
    ],
)
def test_a_strip_shows_every_round_and_says_what_has_no_size(
    states: list[str], expected: list[str]
) -> None:
    text = drawn(with_norms(doublings(3), states), "tree")
    for words in expected:
        assert words in text


def with_norms(report: Report, states: list[str]) -> Report:
    """The loop with other gradients on the way into its rounds, from backward's first on."""
    (backward,) = report.passes
    infos = list(backward.gradients)
    for position, words in enumerate(states):
        state, _, norm = words.partition(" ")
        infos[backward.upstream[position][0]] = {
            "none": GradientInfo("none"),
            "zero": GradientInfo("zero", norm=0.0),
            "finite": GradientInfo("finite", norm=float(norm or 0)),
            "NaN": GradientInfo("non-finite", norm="NaN", nan=1),
        }[state]
    changed = msgspec.structs.replace(backward, gradients=tuple(infos))
    return msgspec.structs.replace(report, passes=(changed,))


# ---------------------------------------------------------------------- parameters


TABLES: dict[str, tuple[str, Options]] = {
    "small": ("small", Options()),
    "states": ("states", Options()),
    "states-sorted": ("states", Options(sort="gradient")),
    "hostile": ("hostile", Options()),
    "traced": ("traced", Options()),
    "largest": ("transformer", Options(top=5)),
    "smallest": ("transformer", Options(top=-5)),
    "focus": ("transformer", Options(folding=Folding(focus="*.h.3.attn"))),
    "path": ("transformer", Options(sort="name", folding=Folding(path="gpt.wte.weight"))),
}


@pytest.mark.parametrize("name", TABLES)
def test_table_and_csv(name: str) -> None:
    case, options = TABLES[name]
    report, options = CASES[case](), replace(options, width=80)
    compare(f"table/{name}.txt", drawn(report, "table", options))
    compare(f"table/{name}.csv", drawn(report, "csv", options))


@pytest.mark.parametrize("column", ["shape", "weight", "gradient", "ratio", "zeros", "nonfinite"])
@pytest.mark.parametrize("top", [None, 2, -2])
def test_sorting_puts_what_is_not_finite_first_and_what_is_unknown_last(
    column: Column, top: int | None, session: Session
) -> None:
    report = session.look(PARAMETERS) if not SEEN else SEEN[0]
    SEEN[:] = [report]
    text = drawn(report, "csv", Options(sort=column, top=top))
    found = [row[column] for row in csv.DictReader(io.StringIO(text))]
    everything = csv.DictReader(io.StringIO(drawn(report, "csv")))
    values = [row[column] for row in everything]

    def place(value: str) -> tuple[int, float]:
        if value == "":
            return 2, 0
        number = size_of(value)
        if number != number or number == float("inf"):
            return 0, 0
        return 1, number if (top or 0) < 0 else -number

    def size_of(value: str) -> float:
        if column != "shape":
            return float(value)
        return float(torch.Size(map(int, re.findall(r"\d+", value))).numel())

    expected = sorted(values, key=place)
    assert found == expected[: abs(top) if top else None]


SEEN: list[Report] = []
PARAMETERS = """
import torch
torch.manual_seed(0)
w = torch.randn(5, 3, requires_grad=True)
zero = torch.zeros(3, requires_grad=True)
unused = torch.ones(2, requires_grad=True)
bad = torch.ones(4, requires_grad=True)
sparse = torch.randn(40, requires_grad=True)
x = torch.tensor([[1.0, -2.0, 0.5, 0.0, 3.0]])
out = torch.relu(x @ w + zero).sum() + (unused * 1).detach().sum()
out = out + (bad * float("inf")).sum() + sparse[3:7].sum()
out.backward()
"""


def test_the_numbers_of_the_table_are_those_of_torch(session: Session) -> None:
    report = session.look(PARAMETERS, "--histograms")
    program = dict[str, torch.Tensor]()
    exec(PARAMETERS, program)
    rows = {row["name"]: row for row in csv.DictReader(io.StringIO(drawn(report, "csv")))}
    assert set(rows) == {"w", "zero", "bad", "sparse"}
    for name, row in rows.items():
        tensor = program[name].detach()
        gradient = program[name].grad
        assert gradient is not None
        assert row["shape"] == str(list(tensor.shape)).replace(" ", "")
        assert int(row["zeros"]) == int((gradient == 0).sum())
        assert int(row["nonfinite"]) == int((~gradient.isfinite()).sum())
        assert float(row["weight"]) == pytest.approx(float(tensor.norm()))
        if gradient.isfinite().all():
            assert float(row["gradient"]) == pytest.approx(float(gradient.norm()))
        known = bool(tensor.norm()) and bool(gradient.isfinite().all())
        if known:
            ratio = float(gradient.norm() / tensor.norm())
            assert float(row["ratio"]) == pytest.approx(ratio)


# ---------------------------------------------------------------------- the largest


@pytest.mark.parametrize("top", [4, -4])
@pytest.mark.parametrize("case", ["small", "states", "transformer"])
def test_the_largest_and_the_smallest(case: str, top: int) -> None:
    name = f"{case}-{'largest' if top > 0 else 'smallest'}"
    compare(f"top/{name}.txt", drawn(CASES[case](), "tree", Options(width=80, top=top)))


@given(programs())
def test_the_list_is_in_order_and_holds_every_node_that_a_gradient_reached(report: Report) -> None:
    (backward,) = report.passes
    text = drawn(report, "tree", Options(width=200, top=10_000))
    numbers = [int(number) for number in re.findall(r"^ *#(\d+)", text, re.MULTILINE)]
    sizes = {node.id: backward.at(node.id).norm for node in report.graph.nodes}
    assert sorted(numbers) == [node for node, size in sizes.items() if size is not None]
    found = [float(sizes[number] or 0) for number in numbers]
    assert found == sorted(found, reverse=True)


def test_a_list_is_restricted_by_focus_and_path() -> None:
    report = LARGE["transformer"]
    inside = drawn(report, "tree", Options(width=200, top=500, folding=Folding(focus="gpt.h.3")))
    rows = inside.splitlines()[2:]
    assert len(rows) == 22 and all("gpt.h.3" in row for row in rows)
    path = drawn(
        report, "tree", Options(width=200, top=500, folding=Folding(path="gpt.wte.weight"))
    )
    assert "gpt.wpe" not in path and "gpt.wte.weight" in path


def test_a_graph_without_gradients_has_no_largest() -> None:
    for format in ("tree", "table"):
        with pytest.raises(GradscopeError, match="gradscope backward"):
            drawn(small(backward=False), format, Options(top=3))


# ---------------------------------------------------------------------- the command line


@pytest.fixture
def saved(session: Session) -> str:
    path = session.folder / "saved.json"
    path.write_bytes(storage.encode(LARGE["transformer"]))
    return str(path)


@pytest.mark.parametrize(
    ("arguments", "what", "hint"),
    [
        ("--sort size --format table", "'size' is not one of 'name', 'shape'", ""),
        ("--sort name", "--sort works with the formats table and csv, not tree", "--format table"),
        (
            "--sort name -o x.svg",
            "--sort works with the formats table and csv, not svg",
            "--format table",
        ),
        ("--top 0", "--top 0 lists nothing", "--top 10"),
        ("--top 3 -o x.svg", "--top works with lists, not svg", "--focus GLOB"),
        ("--top many", "'many' is not a valid integer", ""),
        ("--focus gpt.h.99", "--focus gpt.h.99 matches no module", "nearest: gpt.h.9"),
        ("--focus", "Option '--focus' requires an argument", ""),
        ("--path gpt.h.99.weight", "no leaf is called", "nearest first"),
        ("--open -o -", "--open: stdout cannot be opened", "leave out -o"),
        ("--format lines", "'lines' is not one of 'tree', 'code', 'table', 'csv'", ""),
    ],
)
def test_bad_input_is_answered_in_two_lines(
    arguments: str, what: str, hint: str, saved: str, session: Session
) -> None:
    done = session.cli("show", saved, *arguments.split())
    assert done.status == 2 and not done.out
    assert what in done.err and hint in done.err
    assert not (session.folder / "x.svg").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="others need not be told where")
@pytest.mark.parametrize(
    ("terminal", "why"), [("/dev/pts/1", " over SSH"), ("", ", there is no display")]
)
def test_where_nothing_can_be_opened_a_file_is_named_in_one_line(
    terminal: str, why: str, saved: str, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SSH_CONNECTION", "DISPLAY", "WAYLAND_DISPLAY", "BROWSER", "WSL_DISTRO_NAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SSH_TTY", terminal)
    done = session.cli("show", saved, "-o", "x.dot", "--open")
    assert (done.status, done.out) == (0, "")
    assert done.err.splitlines() == [
        "gradscope: wrote x.dot",
        f"gradscope: not opened{why}: {session.folder / 'x.dot'}",
    ]


def test_the_names_of_torch(session: Session) -> None:
    session.write(
        """
        import torch
        w = torch.ones(3, requires_grad=True)
        y = w * 2
        for _ in range(9):
            y = y * 2
        (y * w).sum().backward()
        """
    )
    chosen = ("program.py", "--names", "torch", "--width", "110", "--saved", "--format")
    tree = session.cli("backward", *chosen, "tree").out
    assert "[0], [1] …: which entry of next_functions of the node above" in tree
    for words in ("◇ SumBackward0", "○ [0] MulBackward0", "▫ _saved_self", "▸ [0] MulBackward0"):
        assert words in tree
    # Both operands of one product, as next_functions numbers them.
    rows = [line.split() for line in tree.splitlines()]
    assert any(row[1:4] == ["[1]", "w", "AccumulateGrad"] for row in rows)
    assert "AccumulateGrad leaf [3]" in session.cli("backward", *chosen, "dot").out
    assert "#0 SumBackward0" in session.cli("explain", *chosen[:5]).out
    assert "Backward0" not in session.cli("backward", "program.py").out


def test_open_without_a_file_makes_a_page_in_a_temporary_folder(
    saved: str, process: Session, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("SSH_TTY", raising=False)
    monkeypatch.delenv("SSH_CONNECTION", raising=False)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    # A desktop without a program for the file: the same as none at all.
    monkeypatch.setenv("DISPLAY", ":9")
    monkeypatch.setenv("PATH", str(tmp_path))
    done = process.cli("show", saved, "--open")
    assert done.status == 0
    (page,) = tmp_path.glob("gradscope-*/graph.html")
    assert page.read_text("utf-8").startswith("<!doctype html>")
    assert f"wrote {page}" in done.err and "no program to open it with" in done.err


def test_open_starts_the_desktops_program(
    saved: str, process: Session, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("SSH_TTY", "SSH_CONNECTION"):
        monkeypatch.delenv(name, raising=False)
    opener = tmp_path / "xdg-open"
    opener.write_text('#!/bin/sh\nread line < "$1"\necho "$1: $line" > "$1.opened"\n')
    opener.chmod(0o755)
    monkeypatch.setenv("DISPLAY", ":9")
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    done = process.cli("show", saved, "--open", "-o", "x.dot")
    assert done.status == 0
    opened = tmp_path / "x.dot.opened"
    # It runs beside us and may need a moment.
    for _ in range(10_000):
        if opened.exists() and opened.read_text():
            break
        time.sleep(0.01)
    assert opened.read_text() == f"{tmp_path / 'x.dot'}: digraph {{\n"
