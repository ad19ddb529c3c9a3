"""The tensor that ``--root`` names, which may come to be only as the program runs."""

from __future__ import annotations

import sys
from types import FrameType

import torch

from gradscope.errors import RootError
from gradscope.graphing.roots import NoTensor, Unusable, named_root, unknown_root
from gradscope.recording.names import Scopes
from gradscope.recording.recorder import Recorder

_FILE = "<module>"
"""What python calls the code of a whole file."""


class AwaitedRoot:
    """Looks for a root at each backward call, as long as it may still come.

    Args:
        text: the expression of ``--root``.
        line: that of the program's file behind which the text, a plain name, gets no value any
            more, and only one at most; None where this is not known.
        recorder: what is known of how the graph was made.
    """

    def __init__(self, text: str, line: int | None, recorder: Recorder) -> None:
        self._text = text
        self._line = line
        self._recorder = recorder
        self._unusable: Unusable | None = None
        self._seen: dict[str, None] = {}

    def at_call(self, number: int, scopes: Scopes, frame: FrameType) -> torch.Tensor | None:
        """The root, at the backward call of this number in ``frame``; None if it may yet come.

        Raises:
            RootError: it will not, or the expression is wrong.
        """
        try:
            root = named_root(self._text, scopes, self._recorder)
        except Unusable as error:
            # `loss = 0.0` before a loop: what it is to be may come.
            if isinstance(error, NoTensor) and self._line is not None:
                raise
            self._unusable = error
            return None
        if root is None:
            self._seen.update(dict.fromkeys(scopes.variable_names()))
            self._refuse_if_passed(number, frame)
        return root

    def at_end(self, scopes: Scopes) -> torch.Tensor:
        """The root, when the program has ended.

        Raises:
            RootError: it never came, or was no tensor with history.
        """
        root = named_root(self._text, scopes, self._recorder)
        if root is None and self._unusable is not None:
            raise self._unusable
        if root is None:
            raise unknown_root(self._text, [*self._seen, *scopes.variable_names()])
        return root

    def _refuse_if_passed(self, number: int, frame: FrameType | None) -> None:
        main = vars(sys.modules["__main__"])
        while frame is not None and (frame.f_globals is not main or frame.f_code.co_name != _FILE):
            frame = frame.f_back
        if self._line is not None and frame is not None and frame.f_lineno > self._line:
            raise RootError(
                f"--root {self._text}: no such variable at backward call {number}, nor later",
                f"nothing after line {self._line} gives it a value",
                *unknown_root(self._text, self._seen).hints,
            )
