"""All models.  Not collected by itself, because it needs the packages: ``make test-models``."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator

import pytest
import torch

from tests.looking import Session
from tests.models.catalogue import MODELS, Model
from tests.models.examined import examined

# What torch and the packages warn of is theirs.
pytestmark = pytest.mark.filterwarnings("ignore")

# The tensors are small, and there is a process on each core.
torch.set_num_threads(1)

Record = Callable[[str, object], None]


@pytest.fixture(scope="module", autouse=True)
def _offline() -> Iterator[None]:
    """The packages are imported before any test looks for what is left installed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HUB_OFFLINE", "1")
        patch.setenv("TRANSFORMERS_VERBOSITY", "error")
        for package in MODELS:
            importlib.import_module(package)
        yield


@pytest.mark.parametrize(
    "model",
    [model for models in MODELS.values() for model in models],
    ids=lambda model: f"{model.package}: {model.name}",
)
def test_every_command_is_right_about(
    model: Model, session: Session, record_property: Record
) -> None:
    for word, count in examined(model, session).items():
        record_property(f"{model.package} {word}", count)
