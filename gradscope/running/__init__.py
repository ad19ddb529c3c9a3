"""When to look: a program is started as python would, watched, and turned into one Report.

``session`` puts target and watcher together; ``watcher`` chooses the moment; ``look`` is the same
from inside a program.  Knows nothing of formats or of the command line.
"""
