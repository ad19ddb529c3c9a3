"""The healed programs of the clinic that ``test_clinic.py`` leaves out.  Not collected by itself:
``make test-clinic`` runs both."""

from __future__ import annotations

import pytest

from tests.clinic.manifest import CASES, Case
from tests.looking import Session
from tests.test_clinic import SAMPLE, findings


@pytest.mark.parametrize(
    "case", [case for case in CASES if case not in SAMPLE], ids=lambda case: case.name
)
def test_healed(session: Session, case: Case) -> None:
    found = findings(session, case.program("healed"))
    assert [finding for finding in found if finding.severity != "information"] == []
