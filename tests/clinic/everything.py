"""The programs of the clinic that ``test_clinic.py`` leaves out.  Not collected by
itself: ``make test-clinic`` runs both."""

from __future__ import annotations

import pytest

from tests.clinic.manifest import CASES, HEALTHY, Case, Healthy
from tests.looking import Session
from tests.test_clinic import CALM, HEALED, ILL, look_at_healed, look_at_healthy, look_at_sick


@pytest.mark.parametrize(
    "case", [case for case in CASES if case not in ILL], ids=lambda case: case.name
)
def test_sick(session: Session, case: Case) -> None:
    look_at_sick(session, case)


@pytest.mark.parametrize(
    "case", [case for case in CASES if case not in HEALED], ids=lambda case: case.name
)
def test_healed(session: Session, case: Case) -> None:
    look_at_healed(session, case)


@pytest.mark.parametrize(
    "case", [case for case in HEALTHY if case not in CALM], ids=lambda case: case.name
)
def test_healthy(session: Session, case: Healthy) -> None:
    look_at_healthy(session, case)
