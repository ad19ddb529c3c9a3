"""What program to run, and running it exactly as python would.

:func:`parse_target` turns what was typed into a :class:`Target`, :meth:`Program.prepare` finds and
compiles it, :meth:`Program.run` runs it, and the :class:`Ending` shows and repeats what python
would have done.  This room must not know torch, click, or why the program is run: whoever watches
comes in by callbacks.

Cells of a notebook run in IPython's shell, which is imported for nothing else; a single cell of a
notebook that is open, in the shell that it was typed in.

torch is imported when the program imports it, so that environment variables set before still count;
the recorder starts right after. Frames of ours, the detour torch takes while a mode is active, and
the longer way of a module call with hooks are removed from tracebacks, and warnings keep their
place.
"""

from gradscope.target.cleaning import clean
from gradscope.target.description import Target, TargetKind, parse_target
from gradscope.target.ending import Ending, Stopper, StopProgram, raise_interrupt
from gradscope.target.program import OtherProcesses, Program

__all__ = [
    "Ending",
    "OtherProcesses",
    "Program",
    "StopProgram",
    "Stopper",
    "Target",
    "TargetKind",
    "clean",
    "parse_target",
    "raise_interrupt",
]
