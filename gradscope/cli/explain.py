"""The explanation: what the reader asked for, as a study of the graph."""

from __future__ import annotations

from typing import Any

from gradscope.cli.last_target import cache_folder
from gradscope.cli.result import Result
from gradscope.cli.running import run_command
from gradscope.errors import TargetError

OWN = {"text": "explain", "html": "explain_page"}
"""How an explanation is shown."""


def run_explain(options: dict[str, Any], arguments: tuple[str, ...]) -> Result:
    """The whole of ``explain``.

    Raises:
        GradscopeError: before the program ran.
    """
    from gradscope.analyses.explain.request import Explain

    names = ("leaf", "node", "jacobian", "everything")
    asked = Explain(**{name: options.pop(name) for name in names}, cache=str(cache_folder()))
    if asked.leaf is not None and asked.node is not None:
        raise TargetError("--leaf and --node given at once", "ask for one of them")
    return run_command(options, gradients=True, arguments=arguments, study=asked, own=OWN)
