"""What CI and editors read: annotations, lines for problem matchers, the page about them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec
import pytest

from gradscope.model.observations import Location
from gradscope.model.report import Report
from gradscope.render.answers.diagnosis import gcc, github
from tests.looking import Session
from tests.reports import diagnosed

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "ci.md").read_text("utf-8")
SICK = """
import torch
layers = [torch.sqrt]
w = torch.zeros(3, requires_grad=True)
v = torch.ones(3, requires_grad=True)
optimizer = torch.optim.SGD([w, v], 0.1)
loss = layers[0](w).sum() * {"a": 1}["a"]
loss.backward()
"""


def _located(report: Report, file: str, line: int = 3) -> Report:
    """The same report, whose first finding stands in that file."""
    first = msgspec.structs.replace(report.findings[0], location=Location(file, line, "f(x)"))
    return msgspec.structs.replace(report, findings=(first, *report.findings[1:]))


@pytest.mark.parametrize(
    ("file", "root", "shown"),
    [
        ("a dir/ü.py", "", "a dir/ü.py"),
        ("/work place/pkg/m.py", "/work place", "pkg/m.py"),
        ("/elsewhere/m.py", "/work place", "/elsewhere/m.py"),
    ],
)
def test_paths_count_from_the_checkout(
    file: str, root: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_WORKSPACE", root)
    (line, *_) = github(_located(diagnosed(), file)).splitlines()
    assert line.startswith(f"::error file={shown},line=3,")


def test_what_has_no_line_stands_at_the_head_of_the_program(session: Session) -> None:
    script = str(session.write("import torch\n"))
    report = diagnosed()
    meta = msgspec.structs.replace(report.meta, target=f"{script}::main -- --lr 1")
    report = msgspec.structs.replace(report, meta=meta)
    assert gcc(report).splitlines()[1].startswith("program.py:1: warning: naïve")


# ---------------------------------------------------------------- the page about it


def test_the_problem_matcher_reads_what_is_written(session: Session) -> None:
    (text,) = re.findall(r"^```json\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    (task,) = json.loads(text)["tasks"]
    pattern = task["problemMatcher"]["pattern"]
    name = "odd: name [1].py"
    session.write(SICK, name)
    words = [name if word == "${relativeFile}" else word for word in task["args"]]
    done = session.cli(*words)
    read = [re.fullmatch(pattern["regexp"], line) for line in done.out.splitlines()]
    assert [
        (one[pattern["file"]], one[pattern["line"]], one[pattern["severity"]], one[pattern["code"]])
        for one in read
        if one is not None
    ] == [(name, "6", "error", "GS102"), (name, "4", "warning", "GS301")]
    assert len(read) == 2
    assert read[0] is not None
    assert read[0][pattern["message"]].startswith("Backward of `layers[0](w)` turns")
