"""The public Python interface: look at a tensor's graph from inside a program.

Safe at a breakpoint: buffers are kept, ``.grad`` and the random state stay as they are.  The
command line stands on the same rooms.  torch is imported only by the functions that need it.
"""

from gradscope.api.difference import Difference, diff
from gradscope.api.looking import backward, check, depends, doctor, explain, load, memory, trace
from gradscope.api.recording import RecordedBlock, Run, record
from gradscope.api.report import LeafGradient, Report
from gradscope.api.watching import WatchedTraining, watch
from gradscope.model.observations import Finding
from gradscope.model.rows import ModuleRow, Row

__all__ = [
    "Difference",
    "Finding",
    "LeafGradient",
    "ModuleRow",
    "RecordedBlock",
    "Report",
    "Row",
    "Run",
    "WatchedTraining",
    "backward",
    "check",
    "depends",
    "diff",
    "doctor",
    "explain",
    "load",
    "memory",
    "record",
    "trace",
    "watch",
]
