"""How a command ended; plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradscope.target import Ending


@dataclass
class Result:
    """The exit status, and how the user's program ended if one ran.

    A status other than 0 is ours; with 0 the program's own ending decides.
    """

    status: int = 0
    ending: Ending | None = None
