"""Makes the tracebacks of a watched program equal to those python would have printed, and its room
for recursion what python would have given it.

Watching leaves two traces: frames of this package, and the detour that torch's functions take while
a ``TorchFunctionMode`` is active.  Those that the program prints itself (``traceback.print_exc``,
``logging.exception``) all go through one class of the standard library, a thread's exceptions
through one hook: both are watched while it runs.  Knows the shape of torch's frames, but must not
import torch.
"""

from __future__ import annotations

import linecache
import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType, TracebackType
from typing import Any, NamedTuple

from gradscope.patched import Original, by_way_of

PACKAGE_DIRECTORY = Path(__file__).resolve().parents[1]
_OWN = f"{PACKAGE_DIRECTORY}{os.sep}"

# By the end of the path: torch may be installed anywhere, and must not be imported to ask it.
_OVERRIDES_FILE = str(Path("torch", "overrides.py"))
_DISPATCHING = (_OVERRIDES_FILE, "contextlib.py")
"""Where the frames of torch's dispatcher lie: it takes a mode off in a ``with`` block."""

# The longest known way from a public function to its dispatch is two frames (F.max_pool2d).
_LONGEST_DETOUR = 8


class _Entry(NamedTuple):
    """One line of a traceback, and the step of it that says so; a stack has no steps."""

    frame: FrameType
    instruction: int
    line: int
    step: TracebackType | None = None

    @property
    def code(self) -> CodeType:
        return self.frame.f_code


def clean(error: BaseException, own_directory: Path = PACKAGE_DIRECTORY) -> None:
    """Remove from the tracebacks of ``error`` what watching added, and from all linked to it.

    The exceptions stay the same objects, and so do the steps of their tracebacks: a context manager
    around us, which has kept the traceback, puts it back when the exception goes through it.

    Args:
        error: the exception that left the program.
        own_directory: frames of files below it are ours.
    """
    own = f"{own_directory}{os.sep}"
    for linked in linked_exceptions(error):
        kept = _kept(linked.__traceback__, own)
        following: TracebackType | None = None
        for entry in reversed(kept or ()):
            if entry.step is not None:
                entry.step.tb_next, following = following, entry.step
        if kept is not None:
            # Not by assignment: an exception class may forbid setting attributes (a frozen
            # dataclass).
            BaseException.with_traceback(linked, following)


def stack_as_python(frame: FrameType | None) -> list[tuple[FrameType, int]]:
    """The frames that python would have on its stack, innermost first, each with its line."""
    stack = () if frame is None else traceback.walk_stack(frame)
    entries = [_Entry(one, one.f_lasti, line) for one, line in stack][::-1]
    # What lies around the program is the command line, ours and its library's.
    starts = (
        n for n, one in enumerate(entries) if one.code.co_filename.startswith(f"{_OWN}target")
    )
    kept = _without_detours(entries[next(starts, 0) :], _OWN)
    return [(entry.frame, entry.line) for entry in reversed(kept)]


def without_shell(error: BaseException, shell: Any) -> BaseException:
    """The error with a traceback that begins in the cell, not in the shell that ran it."""
    step = error.__traceback__
    own = shell.run_code.__code__.co_filename
    while step is not None and step.tb_frame.f_code.co_filename == own:
        step = step.tb_next
    return BaseException.with_traceback(error, step)


def _cleaning_init(
    original: Original,
    self: Any,
    exc_type: Any,
    exc_value: Any,
    exc_traceback: Any,
    *args: Any,
    **kwargs: Any,
) -> None:
    original(self, exc_type, exc_value, _as_python(exc_traceback), *args, **kwargs)


def _cleaning_hook(original: Original, args: Any) -> None:
    if args.exc_value is not None:
        clean(args.exc_value)
        # They cannot be changed, and the traceback that they hold is the one from before.
        args = threading.ExceptHookArgs(
            (args.exc_type, args.exc_value, args.exc_value.__traceback__, args.thread)
        )
    original(args)


CLEAN_PRINTING = (
    # The class, because a program may have imported the functions by name, and keeps those.
    by_way_of(traceback.TracebackException, "__init__", _cleaning_init),
    by_way_of(threading, "excepthook", _cleaning_hook),
)
"""While these are started, tracebacks that are printed do not show us."""


def _as_python(shown: TracebackType | None) -> TracebackType | None:
    """A traceback without what watching added; the one that was given stays as it is."""
    try:
        kept = _kept(shown, _OWN)
        rebuilt: TracebackType | None = None
        for entry in reversed(kept or ()):
            rebuilt = TracebackType(rebuilt, entry.frame, entry.instruction, entry.line)
        return shown if kept is None else rebuilt
    except Exception:  # this runs in the middle of the program, which must get its traceback
        return shown


def linked_exceptions(error: BaseException) -> Iterator[BaseException]:
    """Yield ``error`` and, each once, its causes, its contexts, and the members of groups."""
    # A chain may be as long as the program ran, and may bite its own tail.
    waiting, seen = [error], {id(error)}
    while waiting:
        current = waiting.pop()
        yield current
        links = [current.__cause__, current.__context__]
        if isinstance(current, BaseExceptionGroup):
            links += current.exceptions
        for link in links:
            if link is not None and id(link) not in seen:
                seen.add(id(link))
                waiting.append(link)


def _kept(shown: TracebackType | None, own: str) -> list[_Entry] | None:
    """What stays of a traceback; None where that is all of it."""
    entries = []
    step = shown
    while step is not None:
        # An interrupt may come at an instruction that belongs to no line.
        line: int | None = step.tb_lineno
        entries.append(_Entry(step.tb_frame, step.tb_lasti, -1 if line is None else line, step))
        step = step.tb_next
    kept = _without_detours(entries, own)
    return None if len(kept) == len(entries) else kept


def _without_detours(entries: list[_Entry], own: str) -> list[_Entry]:
    """Drop our own frames, and what led into them and back out.

    With a mode active, ``F.relu`` calls torch's dispatcher, that calls our handler, and that calls
    ``F.relu`` again: only this second call is what python would have shown.
    """
    kept: list[_Entry] = []
    after_own = detoured = False
    for entry in entries:
        if entry.code.co_filename.startswith(own):
            if kept and _is_dispatch(kept[-1]):
                kept.pop()
                detoured = True
            after_own = True
            continue
        # Python trims the frames of an import itself, but not where we stand between them.
        if after_own and not _is_import(entry):
            _drop_tail(kept, _is_import)
        if detoured:
            _cut_back_to(entry.code, kept)
        after_own = detoured = False
        kept.append(entry)
    if after_own:
        _drop_tail(kept, _is_import)
    # Ctrl-C on the way: the call itself had not begun, or was over.
    if _drop_dispatch(kept) or detoured:
        _drop_tail(kept, _leads_to_dispatch)
    return kept


def _drop_dispatch(entries: list[_Entry]) -> bool:
    """Drop torch's dispatcher from an end that lies within it, and say whether it did.

    It raises itself where a tensor class of the program knows no such function: that stays.
    """
    for back, entry in enumerate(reversed(entries), 1):
        if not entry.code.co_filename.endswith(_DISPATCHING):
            return False
        if _is_dispatch(entry):
            if linecache.getline(entry.code.co_filename, entry.line).lstrip().startswith("raise "):
                return False
            del entries[-back:]
            return True
    return False


def _is_dispatch(entry: _Entry) -> bool:
    code = entry.code
    return code.co_name == "handle_torch_function" and code.co_filename.endswith(_OVERRIDES_FILE)


def _leads_to_dispatch(entry: _Entry) -> bool:
    return "handle_torch_function(" in linecache.getline(entry.code.co_filename, entry.line)


def _is_import(entry: _Entry) -> bool:
    return entry.code.co_filename.startswith("<frozen importlib._bootstrap")


def _drop_tail(entries: list[_Entry], unwanted: Callable[[_Entry], bool]) -> None:
    while entries and unwanted(entries[-1]):
        entries.pop()


def _cut_back_to(code: CodeType, entries: list[_Entry]) -> None:
    """Drop the first call of the function that is now entered for the second time."""
    for back in range(1, min(_LONGEST_DETOUR, len(entries)) + 1):
        if entries[-back].code is code:
            del entries[-back:]
            # Functions that choose between two others share their code; torch.unique has three.
            _drop_tail(entries, lambda entry: entry.code is code)
            return


def level_recursion() -> None:
    """Raise the recursion limit by our callers' depth: a program has the room it is used to.

    To be called from the very frame that then executes the program.
    """
    depth = sum(1 for _ in traceback.walk_stack(sys._getframe(1)))
    # Calls of C count as well, in some versions: a few of those lead here.
    sys.setrecursionlimit(sys.getrecursionlimit() + depth + 2)
