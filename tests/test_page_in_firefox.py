"""The interactive page in Firefox.

A file of its own: tests of one file run one after the other, and each browser takes minutes.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.test_page_in_browser import try_pages


@pytest.mark.long
def test_the_page_in_firefox(tmp_path: Path) -> None:
    try_pages("firefox", tmp_path)
