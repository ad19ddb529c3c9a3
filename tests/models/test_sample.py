"""Some of the models of torch alone; the others, and those of packages: ``make test-models``."""

from __future__ import annotations

import pytest

from tests.looking import Session
from tests.models.catalogue import MODELS, Model
from tests.models.examined import examined


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")  # what torch warns of is its own
@pytest.mark.parametrize("model", MODELS["torch"][::5], ids=lambda model: model.name)
def test_every_command_is_right_about(model: Model, session: Session) -> None:
    assert examined(model, session)["nodes"]
