"""Where nothing is wrong the doctor stays calm: untrained models of the transformers package,
trained for some steps on random data, and all examples."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from gradscope.model import storage
from gradscope.model.report import Report
from tests.looking import Session

ROOT = Path(__file__).resolve().parent.parent
MODELS = ROOT / "tests" / "clinic" / "models"

# What may be mentioned: model -> rules.
INFORMATION: dict[str, set[str]] = {
    "bert_own_head": {"GS301"},
    "unrolled_rnn": {"GS201"},
}

SICK = ("wrong_function.py", "compiled.py", "amp.py")
"""Examples of what is found."""

LARGE = ("char_gpt", "blackbox", "convnet")
"""Examples whose steps take seconds; ``make test`` leaves them to ``make test-long``."""

EXAMPLES = sorted(
    path
    for pattern in ("*.py", "*/train.py")
    for path in (ROOT / "examples").glob(pattern)
    # What takes several processes is in tests/test_ranks.py; what is to be rescued is sick.
    if path.name not in SICK and path.parent.name not in ("ranks", "rescue")
)


@pytest.fixture(scope="module", autouse=True)
def _offline() -> Iterator[None]:
    """The package is imported before any test looks for what is left installed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HUB_OFFLINE", "1")
        patch.setenv("TRANSFORMERS_VERBOSITY", "error")
        importlib.import_module("transformers")
        yield


@pytest.mark.parametrize("program", sorted(MODELS.glob("*.py")), ids=lambda path: path.stem)
def test_no_warning_on_a_model(session: Session, program: Path) -> None:
    report, status = examined(session, program, "--steps", "all")
    assert status == 0
    assert report.observations is not None
    assert len(report.observations.steps) >= 5
    assert {finding.rule for finding in report.findings} == INFORMATION.get(program.stem, set())


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(path, marks=[pytest.mark.long] * (path.parent.name in LARGE))
        for path in EXAMPLES
    ],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_no_warning_on_an_example(session: Session, program: Path) -> None:
    # A whole training would take half a minute, and its later steps are like these.
    report, status = examined(session, program, "--steps", "10")
    found = {finding.rule for finding in report.findings}
    assert (found, status) == (INFORMATION.get(program.stem, set()), 0)


def examined(session: Session, program: Path, *options: str) -> tuple[Report, int]:
    """The report of a doctor's run, and the exit status."""
    saved = session.folder / "report.json"
    done = session.cli("doctor", str(program), *options, "-q", "-o", str(saved))
    assert saved.exists(), done.out + done.err
    return storage.load(saved), done.status
