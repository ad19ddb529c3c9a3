"""The magic of IPython, and so of notebooks: ``%load_ext gradscope``.

Imported only by an IPython that runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, magics_class
from IPython.display import display

from gradscope.api import Report
from gradscope.errors import GradscopeError

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from gradscope.model import report as plain
    from gradscope.render.options import Options


def load(shell: InteractiveShell) -> None:
    """Add the magic to a shell."""
    shell.register_magics(GradscopeMagics)


@magics_class
class GradscopeMagics(Magics):
    """``%%gradscope`` looks at what a cell does."""

    @cell_magic("gradscope")  # type: ignore[arg-type]
    def run(self, line: str, cell: str) -> None:
        """Run the cell, and show what its backward call, or its last result, does.

        ::

            %%gradscope [trace|backward|explain|doctor|memory|check] [OPTIONS]

        The options are those of the command line; ``%%gradscope doctor --help`` lists them.
        """
        # Here: who only loads it needs no command line.
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
