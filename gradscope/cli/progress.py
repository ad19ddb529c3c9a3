"""What a person at a terminal waits for: now and then a line on stderr, which stays there.

Nothing of the program's is touched for it: no line is taken back, no stream covered, no thread
started.  So nothing can be told while nothing of ours runs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# By name, so that a program may put another clock into the module.
from time import monotonic
from typing import TextIO

from gradscope import doing
from gradscope.cli.terminal import say
from gradscope.model.observations import Step
from gradscope.ranks.job import Job

PAUSE = 10.0
"""Seconds from the beginning to the first line, and from one to the next."""


def _telling(stream: TextIO) -> Callable[[str], None]:
    """Writes what is done on a terminal, at most so often."""
    # The program may put another stream in its place, and read that.
    last = monotonic()

    def tell(words: str) -> None:
        nonlocal last
        now = monotonic()
        if now - last >= PAUSE:
            last = now
            say(words, stream)

    return tell


@contextmanager
def shown(quiet: bool) -> Iterator[bool]:
    """Tell what is done while the block runs, and whether anybody is told.

    Nobody is where that is not wanted, where stderr is no terminal, and where several ranks write
    on it.
    """
    stream = sys.stderr
    if quiet or stream is None or not stream.isatty() or Job.of() is not None:
        yield False
        return
    with doing.heard_by(_telling(stream)):
        yield True


def tell_step(step: Step) -> None:
    """``step 3, loss 0.1302, gradient norm 0.966``: the doctor has watched a call."""
    facts = [f"step {step.number:,}"]
    facts += [f"loss {float(step.loss):.4g}"] if step.loss is not None else []
    facts += [f"gradient norm {float(step.norm):.3g}"] if step.norm is not None else []
    doing.begin(", ".join(facts))
