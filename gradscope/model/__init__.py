"""The wall in the middle of the house: plain data, strictly typed, saved as JSON.

``report`` is what one look found; ``observations``, ``studies`` and ``explanation`` are the answers
that a report may carry besides.  ``plain`` has the bricks of all of them.  ``invariants`` says what
is always true of a report, with ``answers``; ``storage`` writes and reads it.
``request`` is what a run is asked for.  Knows of nothing else in the package but errors and
escaping, and never of torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradscope.model import explanation as explanation
    from gradscope.model import observations as observations
    from gradscope.model import ranks as ranks
    from gradscope.model import studies as studies


def __getattr__(name: str) -> Any:
    # A Report names the answers that it may carry by their modules: these are entered when one is
    # made or read, and by most runs not at all.
    if name not in ("explanation", "observations", "ranks", "studies"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(f"{__name__}.{name}")
