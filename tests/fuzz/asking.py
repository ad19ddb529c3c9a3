"""A program of the fuzzer, looked at by the API from within, where a run asks for that.

Every program imports this module; under python and under the commands it does nothing, and imports
nothing of gradscope.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

VARIABLE = "GRADSCOPE_FUZZ_QUESTION"

QUESTIONS = ("record", "look")
"""``record``: the program is a block that the doctor records.  ``look``: every function of the API
is called where the program says :func:`look`."""

question = os.environ.get(VARIABLE, "")
"""What this process is asked."""


@contextmanager
def watched() -> Iterator[None]:
    """The program runs in this block."""
    if question != "record":
        yield
        return
    import gradscope

    with gradscope.record(doctor=True) as run:
        yield
    _told(run.report)


def look(value: Any) -> None:
    """Ask everything about a tensor."""
    if question != "look":
        return
    import gradscope

    for function in (
        *(gradscope.trace, gradscope.memory, gradscope.backward, gradscope.doctor),
        *(gradscope.explain, gradscope.check),
    ):
        _told(function, value)
    _told(gradscope.depends, value, "x")


def _told(function: Any, *values: Any) -> None:
    """Call a function of the API: a refusal is an answer, a fault of gradscope's is printed."""
    from gradscope import errors

    try:
        function(*values)
    except errors.Fault as fault:
        print(f"gradscope: {fault}", file=sys.stderr)
    except errors.GradscopeError:
        pass
