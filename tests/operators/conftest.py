"""The sums of what was counted are shown below the results."""

from tests.counting import pytest_terminal_summary

__all__ = ["pytest_terminal_summary"]
