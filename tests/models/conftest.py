"""The sums of what was counted are shown below the results; and one thread is enough."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from tests.counting import pytest_terminal_summary

__all__ = ["pytest_terminal_summary"]


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """The tensors are small, and there is a process on each core."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
