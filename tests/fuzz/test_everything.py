"""Programs under the commands that the tests of ``make test`` leave out for them."""

from __future__ import annotations

import pytest

from tests import test_released, test_unchanged, test_unharmed
from tests.fuzz.alike import alike
from tests.fuzz.files import in_turn
from tests.fuzz.trial import COMMANDS
from tests.fuzz.writer import telling
from tests.test_fuzz import ONCE_WRONG

pytestmark = pytest.mark.long

test_a_program_does_what_it_does_alone = alike(
    {
        f"{module.__name__}: {name}": asked
        for module in (test_released, test_unchanged, test_unharmed)
        for name, asked in in_turn(module.ASKED, rest=True).items()
    }
    | in_turn({f"kept: {name}": (telling(text), COMMANDS) for name, text in ONCE_WRONG.items()})
)
