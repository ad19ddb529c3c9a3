"""What signal handlers of the program raise while code of ours happens to run.

Knows nothing of torch.
"""

from __future__ import annotations

import functools
import signal
from types import CodeType
from typing import Any


def let_pass(error: Exception) -> None:
    """Give the program what its signal handlers raise while our code runs.

    Python runs handlers wherever it happens to be, and the program waits for what they raise, as
    for a timeout.

    Raises:
        Exception: that very exception, where a signal handler of the program has raised it.
    """
    # A frame tells the code that it runs and not the function, so handlers are known by code.
    handlers = {_code_of(signal.getsignal(number)) for number in signal.valid_signals()} - {None}
    step = error.__traceback__
    while step is not None:
        if step.tb_frame.f_code in handlers:
            raise error
        step = step.tb_next


def _code_of(handler: Any) -> CodeType | None:
    # Python takes anything that can be called: a partial, a method, an object with `__call__`.
    while isinstance(handler, functools.partial):
        handler = handler.func
    code = getattr(handler, "__code__", None) or getattr(type(handler).__call__, "__code__", None)
    return code if isinstance(code, CodeType) else None
