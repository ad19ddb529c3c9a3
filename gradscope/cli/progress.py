"""How far a watched program is: one line on the terminal that gives way to the program's own.

Knows how a terminal is drawn on; must not know what a step means, or who takes it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TextIO

from rich.console import Console
from rich.control import Control
from rich.segment import ControlType

from gradscope.model.observations import Step

PAUSE = 0.1
"""Seconds between two drawings; who reads faster?"""

_WIPE = Control((ControlType.ERASE_IN_LINE, 2), ControlType.CARRIAGE_RETURN)


class Progress:
    """A line about the latest step, wiped before the program writes and when all is over.

    Nothing is shown while the program has begun a line of its own, such as a progress bar.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._shown = False
        self._writing = False
        self._at_line_start = True
        self._next = 0.0

    def tell(self, step: Step) -> None:
        """Show a step, unless another has just been shown."""
        now = time.monotonic()
        if not self._at_line_start or now < self._next:
            return
        self._next = now + PAUSE
        self.wipe()
        self._shown = self._writing = True
        try:
            # The cursor stays at the start of the line, where the program expects it.
            self._console.print(
                _sentence(step), end="\r", style="dim", markup=False, no_wrap=True, overflow="crop"
            )
        finally:
            self._writing = False

    def wipe(self) -> None:
        """Take the line away, if there is one."""
        if self._shown:
            self._shown, self._writing = False, True
            try:
                self._console.control(_WIPE)
            finally:
                self._writing = False

    @contextmanager
    def giving_way_on(self, stream: TextIO) -> Iterator[None]:
        """While the block runs, whatever is written to a stream wipes the line first.

        The stream stays the object that the program knows; only its ``write`` is covered.
        """
        write = stream.write

        def watched(text: str) -> int:
            if not self._writing and text:
                self.wipe()
                self._at_line_start = text.endswith("\n")
            return write(text)

        stream.write = watched  # type: ignore[method-assign]
        try:
            yield
        finally:
            del stream.write


@contextmanager
def shown() -> Iterator[Callable[[Step], None] | None]:
    """What shows a step on stderr; None if that is a terminal that cannot take a line back."""
    console = Console(stderr=True, highlight=False)
    if console.is_dumb_terminal:
        yield None
        return
    progress = Progress(console)
    with ExitStack() as streams:
        streams.callback(progress.wipe)
        for stream in {sys.stdout, sys.stderr}:
            if stream is not None and stream.isatty():
                streams.enter_context(progress.giving_way_on(stream))
        yield progress.tell


def _sentence(step: Step) -> str:
    """``step 3, loss 0.1302, gradient norm 0.966``: plain characters, for any encoding."""
    facts = [f"step {step.number:,}"]
    facts += [f"loss {float(step.loss):.4g}"] if step.loss is not None else []
    facts += [f"gradient norm {float(step.norm):.3g}"] if step.norm is not None else []
    return ", ".join(facts)
