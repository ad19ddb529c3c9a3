"""Where a program was stopped, and whether anything of it was left to run."""

from __future__ import annotations

import dis
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from traceback import walk_stack
from types import CodeType, FrameType

from gradscope.recording.places import frames_from
from gradscope.recording.recorder import Recorder

_STARTER = str(Path(__file__).parent.parent / "target") + "/"
"""What starts the program: further out, nothing is the program's own."""

_IDLE = ("POP_TOP", "NOP", "CACHE", "LOAD_CONST", "LOAD_FAST", "STORE_NAME", "STORE_FAST")
"""Instructions that do nothing but keep or drop a result."""

_LOOPS = ("JUMP_BACKWARD", "POP_JUMP_BACKWARD_IF_TRUE", "POP_JUMP_BACKWARD_IF_FALSE")


@dataclass(frozen=True)
class StoppedAt:
    """The backward call at which a program was stopped: its number, counted from 1, and place.

    Attributes:
        is_last: whether no function that was running then had anything left to do.
        is_repeated: whether another backward call is to be expected, from what they had left.
        outermost: the code of the outermost of these functions.
    """

    call: int
    file: str
    line: int
    is_last: bool
    is_repeated: bool
    outermost: CodeType

    @classmethod
    def of(cls, call: int, frame: FrameType, recorder: Recorder) -> StoppedAt | None:
        """Where the program is now; None where no code of its own is running."""
        site = recorder.places.site_of_call(frame)
        if site is None:
            return None
        origin = recorder.sources.origin(site)
        frames = _running(frame)
        return cls(
            call,
            origin.file,
            origin.line,
            all(_has_finished(one) for one in frames),
            # Further out are who runs a notebook's cells, or imported this module.
            any(map(_goes_on_to_another, frames_from(frame, recorder.places))),
            frames[-1].f_code,
        )


def _running(frame: FrameType) -> list[FrameType]:
    outwards = (one for one, _ in walk_stack(frame))
    return [*takewhile(lambda one: not one.f_code.co_filename.startswith(_STARTER), outwards)]


def _left(frame: FrameType) -> list[dis.Instruction]:
    """The instructions behind the call in which a frame stands."""
    return [step for step in dis.get_instructions(frame.f_code) if step.offset > frame.f_lasti]


def _goes_on_to_another(frame: FrameType) -> bool:
    """Whether a loop is around the call in which a frame stands, or another call after it."""
    left = _left(frame)
    # Not those by which `await` and `yield from` wait.
    begun = (step.argval for step in left if step.opname in _LOOPS)
    is_in_loop = any(offset <= frame.f_lasti for offset in begun)
    return is_in_loop or any(step.argval in ("backward", "autograd") for step in left)


def _has_finished(frame: FrameType) -> bool:
    """Whether nothing but a return comes after the call in which a frame stands."""
    for step in _left(frame):
        if step.opname.startswith("RETURN_"):
            return True
        if step.opname not in _IDLE:
            return False
    return False
