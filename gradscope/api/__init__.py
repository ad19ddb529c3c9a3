"""The public Python interface: look at a tensor's graph from inside a program.

Safe at a breakpoint: buffers are kept, ``.grad`` and the random state stay as they are.  The
command line stands on the same rooms.  torch is imported only by the functions that need it.
"""

from gradscope.api.looking import backward, doctor, load, trace
from gradscope.api.recording import Run, record
from gradscope.api.report import Report
from gradscope.model.observations import Finding

__all__ = ["Finding", "Report", "Run", "backward", "doctor", "load", "record", "trace"]
