"""Every rule's page: complete, printed by ``gradscope rule``, and its two programs diagnosed."""

from __future__ import annotations

import inspect
import os
import re
import sys
from pathlib import Path

import pytest

from gradscope.cli.rules import fitted
from gradscope.model import storage
from gradscope.model.observations import Finding
from gradscope.rules import RULES
from gradscope.rules.register import REMOVED
from tests import new_rule
from tests.fuzz.process import ran
from tests.looking import Session
from tests.new_rule import CHAPTERS
from tests.ranks.running import run
from tests.reference import rule_pages
from tests.terminals import shown_by
from tests.test_structure import facts
from tests.transcripts import ROOT

CODES = list(RULES)


def program(code: str, kind: str) -> str:
    """The program on a rule's page as it is, "fail", or healed, "fixed"."""
    (diff,) = re.findall(r"^```diff\n(.*?)^```$", RULES[code].page(), re.DOTALL | re.MULTILINE)
    other = "+" if kind == "fail" else "-"
    return "".join(line[1:] or "\n" for line in diff.splitlines(True) if line[0] != other)


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


HEADINGS = ["How it is recognised", "A program that has it, healed", "When to ignore it"]


@pytest.mark.parametrize("code", CODES)
def test_a_page_says_all_that_is_to_be_said(session: Session, code: str) -> None:
    rule = RULES[code]
    text = rule.page()
    assert text.startswith(f"# {code} {rule.name}\n\n")
    assert re.findall(r"^## (.*)", text, re.MULTILINE) == HEADINGS
    narrow = fitted(text, 60)
    assert narrow.split() == text.split() and "TODO" not in text
    assert all(len(line) <= 60 for line in re.sub(r"(?ms)^```.*?^```$", "", narrow).split("\n"))
    assert type(rule).__module__.endswith(f".{rule.name.replace('-', '_')}")
    assert session.cli("rule", code).out == text
    assert session.cli("rule", RULES[code].name).out == text


def test_the_docs_show_the_pages() -> None:
    assert dict(rule_pages()) == {
        path: path.read_text("utf-8") for path in (ROOT / "docs" / "rules").glob("*.md")
    }


@pytest.mark.parametrize("code", CODES)
def test_every_rule_is_tried_on_a_report_built_by_hand(code: str) -> None:
    files = (ROOT / "tests" / name for name in ("test_diagnose.py", "test_thresholds.py"))
    named = re.compile(rf'"[^"\n]*\b{code}\b')
    is_tried = any(named.search(path.read_text("utf-8")) for path in files)
    assert is_tried, f"no report that {code} finds in test_diagnose.py or test_thresholds.py"


def test_rules_are_listed_in_a_sentence_each_and_unknown_ones_refused(session: Session) -> None:
    listed = session.cli("rule").out.splitlines()
    assert [line.split("  ")[:2] for line in listed] == [[c, RULES[c].name] for c in CODES]
    assert all(line.split("  ")[2].endswith(".") for line in listed)
    done = session.cli("rule", "GS999")
    assert done.status == 2
    assert "unknown rule GS999" in done.err
    removed = "gradscope: rule GS412 was removed in version 0.1.0\ngradscope: "
    assert session.cli("rule", "GS412").err == f"{removed}gradscope rule lists them all\n"
    ignoring = session.cli("doctor", "x.py", "--ignore", "gs412")
    assert ignoring.err == f"{removed}take it out of --ignore\n"


def test_rules_are_found_by_a_word(session: Session) -> None:
    found = {word: session.cli("rule", word).out for word in ("NaN", "GS7", "rsample")}
    both = session.cli("rule", "zero", "grad").out
    assert {line[:5] for line in both.splitlines()} >= {"GS205", "GS501"} and "GS101" not in both
    assert "# GS204 dead-units" in session.cli("rule", "dead", "units").out
    assert {line[:5] for line in found["NaN"].splitlines()} >= {"GS101", "GS102", "GS105"}
    assert "GS203" not in found["NaN"]
    assert [line[:5] for line in found["GS7"].splitlines()] == [c for c in CODES if c[2] == "7"]
    # What no name and no sentence has is looked for on the pages.
    assert "# GS303 history-cut" in found["rsample"]


def on_terminal(*arguments: str, **more: str) -> str:
    """What a person sees of a command on a terminal of 40 lines."""
    command = [sys.executable, "-m", "gradscope", *arguments]
    pager = "sed s/^/paged:/"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PAGER": pager, **more}
    return shown_by(command, environment=environment)


def test_on_a_terminal_what_is_longer_than_the_screen_is_paged() -> None:
    color = {"TERM": "xterm", "NO_COLOR": ""}
    shown = on_terminal("rule", "GS303", **color)
    assert "paged:" in shown
    assert "paged:# GS303 history-cut" in shown
    plain = on_terminal("rule", "GS303", TERM="xterm", NO_COLOR="1", PAGER="cat")
    assert "paged:" not in plain
    assert "\x1b[" not in plain
    assert "How it is recognised" in plain
    assert "paged:Usage: gradscope backward" in on_terminal("backward", "--help", **color)


RULE_MODULES = [Path(inspect.getfile(type(rule))) for rule in RULES.values()]


@pytest.mark.parametrize("path", RULE_MODULES, ids=lambda path: path.stem)
def test_rules_know_nothing_of_each_other(path: Path) -> None:
    neighbours = {name for name in facts(path).imports if name.startswith("gradscope.rules")}
    shared = ("gradscope.rules.rule", "gradscope.rules.facts", "gradscope.rules.questions")
    assert {name for name in neighbours if not name.startswith(shared)} == set()


def test_the_code_of_a_removed_rule_is_given_to_no_other(tmp_path: Path) -> None:
    assert not RULES.keys() & REMOVED.keys()
    for chapter in CHAPTERS:
        (tmp_path / chapter).mkdir()
        text = new_rule.write(chapter, "some-rule", tmp_path).read_text("utf-8")
        assert re.findall(r'code = "(GS\d+)"', text)[0] not in {*RULES, *REMOVED}


def test_precedence_names_rules_and_never_goes_in_a_circle() -> None:
    below = {code: set(rule.before) for code, rule in RULES.items()}
    assert set().union(*below.values()) <= set(below)
    while free := {code for code, others in below.items() if not others & set(below)}:
        below = {code: others for code, others in below.items() if code not in free}
    assert not below, "these subsume each other"


BROUGHT = '''"""{code} {name}

A bias gets a larger gradient than any weight.
"""

from gradscope.rules.rule import Rule


class BigBias(Rule):
    code = "{code}"
    name = "{name}"

    def look(self, facts):
        yield facts.warning(f"{{len(facts.graph.leaves)}} leaves"{rest})
'''

OTHERS_RULES = {
    "sound": ("GS2901", "", "▲ GS2901 sound · warning\n    1 leaves"),
    "broken": ("GS2902", ", wrong=1 / 0", "The rule broken of demo_broken failed: what it"),
    "unread": ("GS2903", "))", "the rule unread of demo cannot be used: SyntaxError"),
    "coded": ("DR901", "", "the code of BigBias is not GS and three to five digits"),
    "taken": ("GS303", "", "GS303 taken has its code or name from gradscope.rules.missing"),
}


def test_another_package_brings_rules(tmp_path: Path) -> None:
    for name, (code, rest, _) in OTHERS_RULES.items():
        text = BROUGHT.format(code=code, name=name, rest=rest)
        (tmp_path / f"demo_{name}.py").write_text(text)
    info = tmp_path / "demo-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: demo\nVersion: 1\n")
    entries = "".join(f"{name} = demo_{name}\n" for name in OTHERS_RULES)
    (info / "entry_points.txt").write_text(f"[gradscope.rules]\n{entries}")
    command = [sys.executable, "-m", "gradscope", "doctor", "-c", WITHOUT_FAULT]
    paths = os.pathsep.join([str(tmp_path), str(ROOT)])
    done = ran(command, PYTHONPATH=paths, NO_COLOR="1")
    said = done.stdout + done.stderr
    assert [words for *_, words in OTHERS_RULES.values() if words not in said] == []
    assert done.returncode == 1


WITHOUT_FAULT = """
import torch
w = torch.ones(2, requires_grad=True)
(w * w).sum().backward()
"""
