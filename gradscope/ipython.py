"""The magics of IPython, and so of notebooks: ``%load_ext gradscope``.

Imported only by an IPython that runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_magic, magics_class

from gradscope import api
from gradscope.api import Report
from gradscope.errors import GradscopeError, RootError

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


def load(shell: InteractiveShell) -> None:
    """Add the magics to a shell."""
    shell.register_magics(GradscopeMagics)


@magics_class
class GradscopeMagics(Magics):
    """``%gradscope`` looks at one tensor."""

    @line_magic
    def gradscope(self, line: str) -> Report:
        """Show the graph of a tensor, and the gradient on every edge where it has one element.

        ::

            %gradscope EXPR
        """
        if not line.strip():
            raise UsageError("%gradscope needs a tensor, such as: %gradscope loss")
        # In the names of the user, and with a frame in which ours is the only other one.
        ask: dict[str, Any] = {"_look": _look}
        try:
            code = compile(f"_look({line})", "<%gradscope>", "eval")
        except SyntaxError:
            raise UsageError(f"%gradscope takes an expression, not: {line}") from None
        names = {} if self.shell is None else self.shell.user_ns
        report: Report = eval(code, names, ask)
        return report


def _look(root: Any) -> Report:
    if isinstance(root, Report):
        return root
    try:
        return api.backward(root)
    except RootError:  # what a vector is given must be said
        pass
    try:
        return api.trace(root)
    except GradscopeError as error:
        raise UsageError("\n".join((f"%gradscope: {error.what}", *error.hints))) from None
