"""The clinic: every sick program gets its rule, on the right line and op; nothing else gets a
warning."""

from __future__ import annotations

import gc
import shutil
from pathlib import Path

import pytest

from gradscope.model import storage
from gradscope.model.observations import Finding
from tests.clinic.manifest import CASES, FOLDER, HEALTHY, Case, Healthy, right_places
from tests.looking import Session

# Misses that are known, each with its reason; the test fails when one of them is found after all.
MISSED: dict[str, str] = {}


def findings(session: Session, program: Path) -> tuple[Finding, ...]:
    """What the doctor finds; the program runs in a copy of its folder."""
    folder = program.parent
    if folder.parent == FOLDER:
        target = shutil.copy(program, session.folder)
    else:
        target = str(shutil.copytree(folder, session.folder / folder.name) / program.name)
    saved = session.folder / "report.json"
    # What an earlier program in this process left in cycles is not this program's.
    gc.collect()
    done = session.cli("doctor", str(target), "-q", "-o", str(saved))
    assert saved.exists(), done.err
    return storage.load(saved).findings


def is_right(case: Case, finding: Finding) -> bool:
    """Whether a finding names the rule, the line and the operation of a case."""
    if finding.rule != case.rule or finding.location is None:
        return False
    place = (Path(finding.location.file).name, finding.location.line)
    known = {(Path(file).name, line) for file, line in right_places(case)}
    words = [finding.message, finding.subject, finding.why, *finding.evidence]
    words.append(finding.node.op if finding.node else "")
    return place in known and case.op.lower() in " ".join(words).lower()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_sick(session: Session, case: Case) -> None:
    found = findings(session, case.program("sick"))
    right = any(is_right(case, finding) for finding in found)
    assert right != (case.name in MISSED), found
    others = [
        finding
        for finding in found
        if finding.rule not in (case.rule, *case.also) and finding.severity != "information"
    ]
    assert case.name in MISSED or not others, others


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_healed(session: Session, case: Case) -> None:
    found = findings(session, case.program("healed"))
    assert [finding for finding in found if finding.severity != "information"] == []


@pytest.mark.parametrize("case", HEALTHY, ids=lambda case: case.name)
def test_healthy(session: Session, case: Healthy) -> None:
    found = findings(session, case.program)
    assert [finding for finding in found if finding.severity != "information"] == []
    assert {finding.rule for finding in found} <= set(case.information)


def test_known_misses_exist_and_are_few() -> None:
    assert set(MISSED) <= {case.name for case in CASES}
    assert len(MISSED) <= 0.05 * len(CASES)
