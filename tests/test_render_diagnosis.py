"""What the doctor tells, as golden texts; and findings in the drawings of a graph."""

from __future__ import annotations

import re

import msgspec
import pytest
from rich.cells import cell_len

from gradscope.model.report import Report
from gradscope.render import Options, render
from gradscope.render.answers import diagnosis
from gradscope.simplify import Folding
from tests.goldens import compare
from tests.reports import CASES, diagnosed, diagnosed_module, small

DIAGNOSED = ("diagnosed", "diagnosed-module")


def text(report: Report, **options: object) -> str:
    return diagnosis.text(report, msgspec.convert(options, Options))


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("case", DIAGNOSED)
def test_text_at_several_widths(case: str, width: int) -> None:
    told = text(CASES[case](), width=width)
    compare(f"diagnosis/{case}-{width}.txt", told)
    below = [line for line in told.splitlines() if line.startswith(" ")]
    assert max(map(cell_len, below)) <= width


def test_text_in_ascii() -> None:
    told = text(diagnosed(), unicode=False, width=80)
    compare("diagnosis/diagnosed-ascii.txt", told)
    # What the user wrote stays; the signs are ours.
    assert told.replace("naïve_größe", "").isascii()


def test_text_in_colour_says_the_same() -> None:
    told = text(diagnosed(), color=True)
    assert told.count("\x1b[1") >= 3
    assert re.sub(r"\x1b\[[\d;]*m", "", told) == text(diagnosed())


@pytest.mark.parametrize("format_name", ["json", "github", "gcc"])
def test_machine_formats(format_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    told = diagnosis.FORMATS[format_name](diagnosed(), Options())
    compare(f"diagnosis/diagnosed.{format_name}", told)


def test_nothing_found_is_one_line() -> None:
    assert text(small()) == "no findings\n"
    assert diagnosis.FORMATS["github"](small(), Options()) == ""
    assert diagnosis.FORMATS["gcc"](small(), Options()) == ""


@pytest.mark.parametrize("depth", [1, 2])
def test_a_closed_module_inherits_the_badge_of_what_is_inside(depth: int) -> None:
    report, folding = diagnosed_module(), Folding(depth=depth)
    compare(f"tree/diagnosed-module-depth-{depth}.txt", str(_drawn(report, "tree", folding)))
    dot = str(_drawn(report, "dot", folding))
    marked = [line for line in dot.splitlines() if re.match(r"\t\d+ \[.*▲ GS202", line)]
    assert len(marked) == 1
    assert 'color="#b45309"' in marked[0]
    assert "GS202 exploding: The gradient grows" in marked[0]


def _drawn(report: Report, format_name: str, folding: Folding) -> str | bytes:
    return render(report, format_name, Options(folding=folding))
