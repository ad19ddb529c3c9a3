"""Every rule's page: complete, printed by ``gradscope rule``, and its two programs diagnosed."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gradscope.model import storage
from gradscope.model.observations import Finding
from gradscope.render.words.rule_pages import page
from gradscope.rules import RULES
from tests.looking import Session
from tests.ranks.running import run
from tests.terminals import open_terminal, read
from tests.test_structure import facts
from tests.transcripts import ROOT

CODES = list(RULES)


def program(code: str, kind: str) -> str:
    """The program of this kind on a rule's page."""
    found = re.findall(rf"^```python {kind}\n(.*?)^```$", page(code), re.DOTALL | re.MULTILINE)
    assert len(found) == 1, f"{code} has {len(found)} programs marked {kind}"
    return str(found[0])


def findings(session: Session, code: str, kind: str) -> tuple[Finding, ...]:
    """What the doctor finds in a program; one about several ranks runs in two."""
    path, saved = session.write(program(code, kind)), session.folder / "report.json"
    arguments = ["doctor", str(path), "-q", "-o", str(saved)]
    if code.startswith("GS7"):
        run(session.folder, arguments)
        return storage.load(saved).findings
    done = session.cli(*arguments)
    assert saved.exists(), done.err
    return storage.load(saved).findings


@pytest.mark.parametrize("code", CODES)
def test_the_failing_program_is_diagnosed(session: Session, code: str) -> None:
    found = findings(session, code, "fail")
    assert code in [finding.rule for finding in found], found
    (own, *_) = [finding for finding in found if finding.rule == code]
    assert own.name == RULES[code].name
    assert own.location is not None, own
    others = [finding for finding in found if finding.rule != code]
    assert all(finding.severity == "information" for finding in others), others


@pytest.mark.parametrize("code", CODES)
def test_the_healed_program_is_clean(session: Session, code: str) -> None:
    found = findings(session, code, "fixed")
    assert [f for f in found if f.rule == code or f.severity != "information"] == []


@pytest.mark.parametrize("code", CODES)
def test_a_page_says_all_that_is_to_be_said(session: Session, code: str) -> None:
    text = page(code)
    assert text.startswith(f"# {code} {RULES[code].name}\n")
    for heading in ("How it is recognised", "A program that has it", "When to ignore it"):
        assert f"\n## {heading}\n" in text
    assert session.cli("rule", code).out == text
    assert session.cli("rule", RULES[code].name).out == text


PAGES = ROOT / "docs" / "rules"


def test_every_rule_has_a_page_and_a_line_and_nothing_else_has() -> None:
    assert {path.stem for path in PAGES.glob("*.md")} == {*CODES, "README"}
    table = re.findall(
        r"^\| \[(\w+)\]\((.+?)\) \| (\S+) \| \S", (PAGES / "README.md").read_text("utf-8"), re.M
    )
    assert table == [(code, f"{code}.md", RULES[code].name) for code in CODES]


@pytest.mark.parametrize("code", CODES)
def test_every_rule_is_tried_on_a_report_built_by_hand(code: str) -> None:
    files = (ROOT / "tests" / name for name in ("test_diagnose.py", "test_thresholds.py"))
    assert any(f'"{code}"' in path.read_text("utf-8") for path in files)


def test_rules_are_listed_in_a_sentence_each_and_unknown_ones_refused(session: Session) -> None:
    listed = session.cli("rule").out.splitlines()
    assert [line.split("  ")[:2] for line in listed] == [[c, RULES[c].name] for c in CODES]
    assert all(line.split("  ")[2].endswith(".") for line in listed)
    done = session.cli("rule", "GS999")
    assert done.status == 2
    assert "unknown rule GS999" in done.err


def test_rules_are_found_by_a_word(session: Session) -> None:
    found = {word: session.cli("rule", word).out for word in ("NaN", "GS7", "rsample")}
    both = session.cli("rule", "zero", "grad").out
    assert {line[:5] for line in both.splitlines()} >= {"GS205", "GS501"} and "GS101" not in both
    assert "# GS207 units-alike" in session.cli("rule", "units", "alike").out
    assert {line[:5] for line in found["NaN"].splitlines()} >= {"GS101", "GS102", "GS105"}
    assert "GS203" not in found["NaN"]
    assert [line[:5] for line in found["GS7"].splitlines()] == [c for c in CODES if c[2] == "7"]
    # What no name and no sentence has is looked for on the pages.
    assert "GS304  no-grad-region  A part of" in found["rsample"]


def on_terminal(*arguments: str, **more: str) -> str:
    """What a person sees of a command on a terminal of 40 lines."""
    command = [sys.executable, "-m", "gradscope", *arguments]
    pager = "sed s/^/paged:/"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PAGER": pager, **more}
    leader, follower = open_terminal(100)
    with subprocess.Popen(
        command, stdin=follower, stdout=follower, stderr=follower, env=environment
    ):
        os.close(follower)
        said = b""
        while new := read(leader):
            said += new
        os.close(leader)
    return said.decode()


def test_on_a_terminal_a_page_is_drawn_and_what_is_longer_than_the_screen_paged() -> None:
    color = {"TERM": "xterm", "NO_COLOR": ""}
    shown = on_terminal("rule", "GS304", **color)
    assert "paged:" in shown
    assert "```" not in shown
    assert "## " not in shown
    assert "\x1b[1;4mGS304 no-grad-region\x1b[0m" in shown
    assert not re.search(r"\x1b\[[\d;]*4[0-7]m", shown), "a background of our own"
    plain = on_terminal("--no-pager", "rule", "GS304", TERM="xterm", NO_COLOR="1")
    assert "paged:" not in plain
    assert "\x1b[" not in plain
    assert "How it is recognised" in plain
    assert "paged:" not in on_terminal("rule", "GS304", **color | {"PAGER": "cat"})
    assert "paged:" not in on_terminal("help", "rule", **color)


def test_help_of_a_command(session: Session) -> None:
    for words in (["backward"], []):
        assert session.cli("help", *words).out == session.cli(*words, "--help").out
    done = session.cli("help", "bakward")
    assert (done.status, done.out) == (2, "")
    assert "No such command 'bakward'" in done.err


def test_an_ignored_rule_stays_silent(session: Session) -> None:
    path = str(session.write(program("GS205", "fail")))
    assert session.cli("doctor", path).status == 1
    assert session.cli("doctor", path, "--ignore", "gs205").status == 0
    assert session.cli("doctor", path, "--fail-on", "error").status == 0
    assert session.cli("doctor", path, "--ignore", "nothing").status == 2
    assert session.cli("doctor", path, "--steps", "0").status == 2


RULE_MODULES = sorted({Path(inspect.getfile(rule.check)) for rule in RULES.values()})


@pytest.mark.parametrize("path", RULE_MODULES, ids=lambda path: path.stem)
def test_rules_know_nothing_of_each_other(path: Path) -> None:
    neighbours = {name for name in facts(path).imports if name.startswith("gradscope.rules")}
    assert {name for name in neighbours if not name.startswith("gradscope.rules._")} == set()


def test_precedence_names_rules_and_never_goes_in_a_circle() -> None:
    below = {code: set(rule.before) for code, rule in RULES.items()}
    assert set().union(*below.values()) <= set(below)
    while free := {code for code, others in below.items() if not others & set(below)}:
        below = {code: others for code, others in below.items() if code not in free}
    assert not below, "these subsume each other"
