"""What a person calls the file that code was compiled from: a path, or the number of a cell.

Notebooks and IPython compile each cell under a name that nobody reads, such as
``/tmp/ipykernel_7/1234.py``; the shell knows which cell that was.  IPython is asked only where the
program has imported it.
"""

from __future__ import annotations

import os
import re
import sys

_NUMBERED = re.compile(r"<ipython-input-(\d+)-[0-9a-f]+>")


def display_name(filename: str, directory: str) -> str:
    """``In[3]`` for a cell; else the file as a person in this directory would type it."""
    cell = _cell(filename)
    if not cell and directory and filename.startswith(directory.rstrip(os.sep) + os.sep):
        return os.path.relpath(filename, directory)
    return cell or filename


def _cell(filename: str) -> str:
    """A cell by the number of its execution, as IPython's own tracebacks name it; "" for others."""
    numbered = _NUMBERED.fullmatch(filename)
    if numbered:
        return f"In[{numbered[1]}]"
    try:
        shell = sys.modules["IPython"].get_ipython()
        return str(shell.compile.format_code_name(filename)[1])
    except Exception:  # no IPython, no shell, no cell, or a shell of another make
        return ""
