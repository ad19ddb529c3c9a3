"""Tests of many programs: each does under its commands what it does under python."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import cast

import pytest

from tests import forkserver
from tests.fuzz.files import Asked, Commands
from tests.fuzz.process import ROOT, environment, ran


def alike(often: Asked, seldom: Asked | None = None) -> Callable[..., None]:
    """A test for each program, and a long one for each that has other commands in ``seldom``.

    All that are selected are run in one warm process, and each program once under python.
    """
    rest = {
        name: (text, _without(commands, often.get(name)))
        for name, (text, commands) in (seldom or {}).items()
    }
    parts = (often, {name: asked for name, asked in rest.items() if asked[1]})

    @cache
    def differing(session: pytest.Session) -> dict[str, list[str]]:
        asked: dict[str, tuple[str, list[list[str]]]] = {}
        for item in session.items:
            if isinstance(item, pytest.Function) and item.function is test:
                (name, part) = cast("tuple[str, int]", item.callspec.params["case"])
                text, commands = parts[part][name]
                asked.setdefault(name, (text, []))[1].extend(map(list, commands))
        command = forkserver.module("tests.fuzz.files")
        done = ran(command, ROOT, environment(), json.dumps(asked), limit=None)
        assert not done.returncode, done.stderr
        answer: dict[str, list[str]] = json.loads(done.stdout)
        return answer

    cases = [pytest.param((name, 0), id=name) for name in often]
    long = [
        pytest.param((name, 1), id=f"{name}, the rest", marks=pytest.mark.long) for name in parts[1]
    ]

    @pytest.mark.parametrize("case", cases + long)
    def test(case: tuple[str, int], request: pytest.FixtureRequest) -> None:
        found = differing(request.session)[case[0]]
        assert not found, "\n".join(found)

    return test


def _without(commands: Commands, done: tuple[str, Commands] | None) -> Commands:
    return [one for one in commands if done is None or one not in done[1]]
