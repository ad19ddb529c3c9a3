"""A few of all operators, of every kind; the others: ``make test-ops``."""

from __future__ import annotations

import sys

import pytest

from tests.conftest import ROOT
from tests.fuzz.process import ran

SAMPLE = (
    "test_every_command_is_right_about[masked.normalize]",
    "test_every_command_is_right_about[sgn]",
    "test_plain_torch_is_wrong_about[as_strided_scatter]",
)


@pytest.mark.long
def test_some_operators_of_torchs_database() -> None:
    file = "tests/operators/everything.py"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0"]
    done = ran([*command, *(f"{file}::{one}" for one in SAMPLE)], ROOT, limit=None)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(SAMPLE)} passed" in done.stdout
