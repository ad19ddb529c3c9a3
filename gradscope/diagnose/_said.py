"""What is said of one kind of oddity; the tables of them are `_axes`, `_states`, `_settings`,
`_unused` and `_misuses`."""

from __future__ import annotations

from typing import NamedTuple

from gradscope.model.observations import Severity


class Words(NamedTuple):
    """What is said of one, with its expression, figures and names filled in; it is told from so
    many times on (``fewest``).  ``is_named``: it is about what its name says, and not about the
    variable that the expression is assigned to."""

    message: str
    evidence: str
    why: str
    remedy: str
    severity: Severity = "warning"
    fewest: int = 1
    is_named: bool = False
