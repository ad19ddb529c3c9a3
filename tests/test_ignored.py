"""Findings that a comment in the program takes back."""

from __future__ import annotations

import json
import re

import pytest
import torch

import gradscope
from tests.looking import Session
from tests.test_rules import program

CODE = "GS205"


def commented(session: Session, comment: str) -> str:
    """The program with this comment at the line of its finding."""
    lines = program(CODE, "fail").splitlines()
    found = re.search(rf"{CODE} .*program\.py:(\d+)", session.cli("doctor", "program.py").out)
    assert found
    lines[int(found[1]) - 1] += comment
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("comment", "is_ignored"),
    [
        (f"  # gradscope: ignore {CODE}", True),
        (f"  #gradscope: ignore GS305, {CODE.lower()}", True),
        ("  # gradscope: ignore GS305", False),
        (f"  # ignore {CODE}", False),
        (f'; "# gradscope: ignore {CODE}"', False),
    ],
)
def test_a_comment_at_its_line_takes_a_finding_back(
    session: Session, comment: str, is_ignored: bool
) -> None:
    session.write(program(CODE, "fail"))
    done = session.told(commented(session, comment), "doctor -o saved.json")
    assert done.status == (not is_ignored)
    assert (CODE in done.out) != is_ignored
    last = done.out.splitlines()[-1]
    assert ("1 finding ignored by a comment" in last) == is_ignored
    as_json = json.loads(session.cli("doctor", "program.py", "--format", "json").out)
    assert as_json["ignored_by_comment"] == is_ignored
    assert len(as_json["findings"]) == (not is_ignored)
    short = session.cli("doctor", "program.py", "--format", "gcc")
    assert ("1 finding ignored by a comment" in short.err) == is_ignored
    # What was saved holds what was told, and is judged by the same file again.
    assert session.cli("doctor", "saved.json").status == done.status


def test_an_unknown_code_in_a_comment_is_told(session: Session) -> None:
    session.write(program(CODE, "fail"))
    done = session.told(commented(session, "  # gradscope: ignore GS999"), "doctor")
    assert done.status == 1
    assert re.search(r"gradscope: program.py:\d+: in a comment: unknown rule GS999;", done.err)
    elsewhere = f"# gradscope: ignore {CODE}\n{program(CODE, 'fail')}"
    assert CODE in session.told(elsewhere, "doctor").out


def cut(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a + b.detach()  # gradscope: ignore GS303


def cut_and_misspelled(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a + b.detach()  # gradscope: ignore GS999


def test_comments_hold_in_blocks_and_reports_from_python() -> None:
    a, b = torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)
    with gradscope.record(doctor=True) as run:
        loss = cut(a * 2, b * 2).sum()
        inside = run.doctor(loss)
        loss.backward()  # type: ignore[no-untyped-call]
    for report in (inside, run.report()):
        assert report.findings == ()
        assert "1 finding ignored by a comment" in report.notes
    with gradscope.record(doctor=True) as run:
        cut_and_misspelled(a * 2, b * 2).sum().backward()  # type: ignore[no-untyped-call]
    assert [one.rule for one in run.findings] == ["GS303"]
    assert re.search(
        r"test_ignored\.py:\d+: in a comment: unknown rule GS999;", run.report().notes[-1]
    )
