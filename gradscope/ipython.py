"""The magics of IPython, and so of notebooks: ``%load_ext gradscope``.

Imported only by an IPython that runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, line_magic, magics_class, no_var_expand
from IPython.display import display

from gradscope import api
from gradscope.api import Report
from gradscope.errors import GradscopeError, RootError

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from gradscope.model import report as plain
    from gradscope.render.options import Options


def load(shell: InteractiveShell) -> None:
    """Add the magics to a shell."""
    shell.register_magics(GradscopeMagics)


def unload(shell: InteractiveShell) -> None:
    """Take the magics out of a shell."""
    manager = shell.magics_manager
    for kind in ("line", "cell"):
        manager.magics[kind].pop("gradscope", None)
    manager.registry.pop(GradscopeMagics.__name__, None)


@magics_class
class GradscopeMagics(Magics):
    """``%gradscope`` looks at one tensor, ``%%gradscope`` at what a cell does."""

    @no_var_expand
    @line_magic("gradscope")  # type: ignore[arg-type]
    def look(self, line: str) -> Report:
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

    @cell_magic("gradscope")  # type: ignore[arg-type]
    def run(self, line: str, cell: str) -> None:
        """Run the cell, and show what its backward call, or its last result, does.

        ::

            %%gradscope [trace|backward|explain|doctor|memory|check] [OPTIONS]

        The options are those of the command line; ``%%gradscope doctor --help`` lists them.
        """
        # Here: who only looks at a tensor needs no command line.
        from gradscope.cli import terminal
        from gradscope.cli.cell import NAME, run_cell
        from gradscope.target.cell import cell_program

        try:
            program = cell_program(self.shell, f"{NAME} {line}".strip(), cell)
            run_cell(line, program, _display if terminal.is_notebook() else None)
        except GradscopeError as error:
            raise UsageError("\n".join((error.what, *error.hints))) from None


def _display(report: plain.Report, options: Options) -> None:
    from gradscope.render.notebook import mime_bundle

    display(mime_bundle(report, repr(Report.of(report)), options), raw=True)  # type: ignore[no-untyped-call]


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
