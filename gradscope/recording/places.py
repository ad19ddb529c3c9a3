"""Where the program is: from interpreter frames to places in its own code.

Frames of torch, of python's standard library, of this package and of handlers that only pass calls
on are skipped, so that a place is one a person wrote.  Knows nothing of graphs, tensors or
expressions.
"""

from __future__ import annotations

import dis
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import CodeType, FrameType

import torch
import typing_extensions

from gradscope.filesystem import is_standard
from gradscope.recording.source import Site

_FOREIGN_FILES = (
    str(Path(torch.__file__).parent) + "/",
    str(Path(__file__).parent.parent) + "/",
    typing_extensions.__file__,  # around what torch calls deprecated
    "<eval_with_key>",  # code that torch.fx wrote
    "<frozen ",  # the parts of the standard library that are built into python
)
_COMPILED = ("__compiled_fn_", "__resume_at_", "torch_dynamo_resume_in_")
"""Names in the code that torch.compile runs in the place of a function of the program; the
positions of its instructions say little."""
_DERIVATIVE_TESTS = str(Path(torch.__file__).parent / "autograd" / "gradcheck.py")
"""Torch's own ``gradcheck`` and ``gradgradcheck``."""
_TRAINERS = re.compile(
    r"[/\\](site|dist)-packages[/\\](lightning|pytorch_lightning|lightning_fabric|accelerate|"
    r"transformers|ignite|fastai)[/\\]"
)
"""Files of packages that call backward for a program."""
_FOREIGN_FUNCTIONS = ("__torch_function__", "__torch_dispatch__")
"""A user's own mode or tensor subclass; what it passes on was called from further out."""


class Places:
    """Numbers every place of the program that is asked about, counting from 0."""

    def __init__(self) -> None:
        self._sites: list[Site] = []
        self.numbers: dict[tuple[int, int], int] = {}
        """By the id of a code and the instruction in it, for who asks at every torch call."""
        self._foreign: dict[int, tuple[CodeType, bool]] = {}
        self.skipped: set[int] = set()
        """The ids of the codes in it that are foreign."""

    def user_frame(self, frame: FrameType | None) -> FrameType | None:
        """The first frame of the program's own, from ``frame`` outwards."""
        # The lookup of :meth:`is_foreign` is written out: every torch call goes by here.
        skipped = self.skipped
        while frame is not None:
            code = frame.f_code
            if id(code) not in skipped and not self.is_foreign(code):
                break
            frame = frame.f_back
        return frame

    def is_in_gradcheck(self, frame: FrameType | None) -> bool:
        """Whether torch's own test of derivatives stands between ``frame`` and the program."""
        while frame is not None and self.is_foreign(frame.f_code):
            if frame.f_code.co_filename == _DERIVATIVE_TESTS:
                return True
            frame = frame.f_back
        return False

    def is_foreign(self, code: CodeType) -> bool:
        """Whether this is code that the program did not write."""
        known = self._foreign.get(id(code))
        if known is None:
            foreign = (
                code.co_filename.startswith(_FOREIGN_FILES)
                or code.co_name in _FOREIGN_FUNCTIONS
                or is_standard(code.co_filename)
                or _is_compiled(code)
            )
            # The code object is kept with the answer: an id is only good while its object lives.
            known = self._foreign[id(code)] = (code, foreign)
            if foreign:
                self.skipped.add(id(code))
        return known[1]

    def number(self, frame: FrameType) -> int:
        """The number of the place where a frame of the program stands."""
        key = (id(frame.f_code), frame.f_lasti)
        number = self.numbers.get(key)
        if number is None:
            site = Site(frame.f_code, _call_at(frame.f_code, frame.f_lasti))
            number = self.numbers[key] = self.number_of_site(site)
        return number

    def number_around(self, frame: FrameType | None) -> int:
        """The number of the place of the program that a frame stands at or was called from; -1
        where there is none."""
        # Every torch call goes by here, most of them through several frames of torch.
        skipped = self.skipped
        while frame is not None:
            code = frame.f_code
            if id(code) not in skipped:
                number = self.numbers.get((id(code), frame.f_lasti))
                if number is not None:
                    return number
                if not self.is_foreign(code):
                    return self.number(frame)
            frame = frame.f_back
        return -1

    def number_of_site(self, site: Site) -> int:
        """The number of a place, whether a frame has stood there or not."""
        number = self.numbers.get((id(site.code), site.lasti))
        if number is None:
            # The site first: a signal handler of the program may raise between the two.  It keeps
            # the code object, because an id is only good while its object lives.
            number = len(self._sites)
            self._sites.append(site)
            self.numbers[id(site.code), site.lasti] = number
        return number

    def site(self, number: int) -> Site | None:
        """The place with this number; None for a negative one."""
        return self._sites[number] if number >= 0 else None

    def line(self, number: int) -> tuple[str, int | None] | None:
        """File and line of the place with this number; None for a negative one."""
        site = self.site(number)
        if site is None:
            return None
        if site.lasti < 0:
            return site.code.co_filename, -site.lasti
        lines = list(site.code.co_positions())
        # Positions are kept for each unit of two bytes, and `lasti` counts bytes.
        return site.code.co_filename, lines[site.lasti // 2][0]

    def own_frames(self, frames: Iterable[FrameType]) -> list[FrameType]:
        """Keep the frames of the program's own code, whose variables its author knows by name."""
        return [frame for frame in frames if not self.is_foreign(frame.f_code)]

    def site_of_error(self, error: BaseException) -> Site | None:
        """Where an exception was raised: the innermost place of the program in its traceback."""
        found = None
        step = error.__traceback__
        while step is not None:
            if not self.is_foreign(step.tb_frame.f_code):
                found = Site(step.tb_frame.f_code, step.tb_lasti)
            step = step.tb_next
        return found

    def site_of(self, frame: FrameType | None) -> Site | None:
        """Where the program is now, seen from a frame."""
        return self.site(self.number_around(frame))

    def number_of_call(self, frame: FrameType) -> int:
        """The number of the place of a backward call that a frame of the program makes; where a
        trainer makes it that has one such line for all, where that was called."""
        frames = frames_from(frame, self)
        own = (one for one in frames if not _TRAINERS.search(one.f_code.co_filename))
        return self.number(next(own, frame))

    def site_of_call(self, frame: FrameType) -> Site | None:
        """The same place itself; None where no code of the program is running."""
        return None if self.is_foreign(frame.f_code) else self.site(self.number_of_call(frame))


_PRECALL = dis.opmap.get("PRECALL", -1)


def _call_at(code: CodeType, lasti: int) -> int:
    """The instruction that makes a call: python 3.11 has two, and stands at the other one as soon
    as it has learned what is called there."""
    if _PRECALL < 0 or lasti < 0 or code.co_code[lasti] != _PRECALL:
        return lasti
    return lasti + 4  # beyond itself and its cache


def _is_compiled(code: CodeType) -> bool:
    """Whether torch.compile has written this code, though it carries the program's file and
    lines."""
    return any(name.startswith(_COMPILED) for name in (code.co_name, *code.co_names))


def frames_from(frame: FrameType | None, places: Places) -> Iterator[FrameType]:
    """The frames of the program from this one outwards, to the first module level."""
    while frame is not None:
        if not places.is_foreign(frame.f_code):
            yield frame
        # Further out is who started or imported this module, whose variables its code does not see.
        if frame.f_code.co_name == "<module>":
            return
        frame = frame.f_back


_REHEARSING = {("torch.distributed.pipelining.stage", "_backward_metadata_inference")}
"""Where torch runs a module on memory that nobody has filled, to learn shapes, and drops the
numbers: by the name of its module and function."""


def is_rehearsal(frame: FrameType | None) -> bool:
    """Whether torch makes a backward call of its own there, which is none of the program's."""
    while frame is not None:
        name = str(frame.f_globals.get("__name__"))
        if (name, frame.f_code.co_name) in _REHEARSING:
            return True
        frame = frame.f_back if name.startswith("torch.") else None
    return False
