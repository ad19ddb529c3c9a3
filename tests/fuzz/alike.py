"""Tests of many programs: each does under its commands what it does under python."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache

import pytest

from tests import forkserver
from tests.fuzz.files import Asked
from tests.fuzz.process import ROOT, environment, ran


def alike(programs: Asked) -> Callable[[str], None]:
    """A test for each program; all are run in one warm process."""

    @cache
    def differing() -> dict[str, list[str]]:
        asked = {
            name: [text, [list(one) for one in words]] for name, (text, words) in programs.items()
        }
        command = forkserver.module("tests.fuzz.files")
        done = ran(command, ROOT, environment(), json.dumps(asked), limit=None)
        assert not done.returncode, done.stderr
        answer: dict[str, list[str]] = json.loads(done.stdout)
        return answer

    @pytest.mark.parametrize("name", programs)
    def test(name: str) -> None:
        assert not differing()[name], "\n".join(differing()[name])

    return test
