"""The backward calls of a run, one entry each, and what the reader should know of them.

Of very many calls the first and the last are kept.  Knows nothing of graphs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

import msgspec

from gradscope.analyses.doctor.captured_call import Origins
from gradscope.model.observations import Step
from gradscope.recording.source import Site

HALF = 500
"""So many of the first calls are kept, and so many of the last."""


class StepLog:
    """The steps of a run."""

    def __init__(self) -> None:
        self.calls = 0
        self.backwards = 0
        self.glanced = 0
        self.batched = 0
        self._first: list[tuple[Step, Site | None]] = []
        self._last: deque[tuple[Step, Site | None]] = deque(maxlen=HALF)

    def add(self, step: Step, site: Site | None) -> None:
        """Another call is about to be made."""
        kept = self._first if len(self._first) < HALF else self._last
        kept.append((step, site))

    @property
    def latest(self) -> Step | None:
        """The call that was added last."""
        kept = self._last or self._first
        return kept[-1][0] if kept else None

    def amend(self, **known: Any) -> Step:
        """Fill in what has become known of the call that was added last."""
        kept = self._last or self._first
        step, site = kept[-1]
        step = msgspec.structs.replace(step, **known)
        kept[-1] = (step, site)
        return step

    def steps(self, origins: Origins) -> Iterator[Step]:
        """All that are kept, with their places."""
        for step, site in [*self._first, *self._last]:
            yield msgspec.structs.replace(step, origin=origins.of_site(site))

    def notes(self, error: BaseException | None) -> Iterator[str]:
        """How the run went, and what was not looked at, or not closely."""
        if isinstance(error, KeyboardInterrupt) and self.calls:
            yield f"the program was interrupted after {self.calls} backward calls"
        if self.batched:
            calls = "call" if self.batched == 1 else "calls"
            were = "was" if self.batched == 1 else "were"
            yield (
                f"{self.batched:,} backward {calls} with is_grads_batched {were} not looked at: "
                "such gradients cannot be read on the way"
            )
