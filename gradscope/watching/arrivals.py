"""In which order the gradients of one backward call come, and what each is before the processes of
a job average it: a hook on each parameter, for as long as the call runs. And functions of torch
that are called by way of ours, for as long as it is wanted.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch

from gradscope.autograd.isolation import Aside, CompilerOff
from gradscope.handlers import HandlersWait
from gradscope.patched import Original, Patched
from gradscope.target import clean
from gradscope.watching.norms import Norms


def tapped(owner: Any, name: str, around: Callable[..., Any]) -> Patched:
    """Have a function of a module or class called by way of ``around(original, ...)``, from now on.

    What the original raises has the traceback that it would have; torch.compile traces none of it.
    """

    def put(original: Original) -> Original:
        @untraced
        @functools.wraps(original)
        def called(*args: Any, **kwargs: Any) -> Any:
            try:
                return around(patch.original, *args, **kwargs)
            except BaseException as error:
                clean(error)  # in the outermost frame of ours
                raise

        return called

    patch = Patched(owner, name, put)
    patch.start()
    return patch


def untraced(hook: Callable[..., Any]) -> Callable[..., Any]:
    """The same hook, which torch.compile does not make a part of the step that it compiles."""
    vars(hook)["_torchdynamo_disable"] = True
    return hook


_one_at_a_time = threading.RLock()
if hasattr(os, "register_at_fork"):
    # Who holds it may not be in the child.
    os.register_at_fork(before=_one_at_a_time.acquire, after_in_parent=_one_at_a_time.release)
    os.register_at_fork(after_in_child=_one_at_a_time.release)


class HiddenFromProgram(Aside):
    """Around what a watch does in the middle of the program: unnoticed, raising nothing, in one
    thread at a time; torch.compile traces none of it."""

    def __enter__(self) -> None:
        self._handlers = HandlersWait()
        self._handlers.__enter__()
        _one_at_a_time.acquire()
        self._compiler = CompilerOff()
        self._compiler.__enter__()
        super().__enter__()

    def __exit__(self, *what: Any) -> bool:
        try:
            return super().__exit__(*what)
        finally:
            self._compiler.__exit__()
            _one_at_a_time.release()
            self._handlers.__exit__()


def in_pass() -> bool:
    """Whether this runs inside a backward call, such as in a hook or a backward function."""
    return torch._C._current_graph_task_id() != -1


class Arrivals:
    """Hears of each ``.grad`` when it has been set; ``norms``, where there are other processes,
    gets what it is then, whose position is in ``norm_of`` by the id of the parameter."""

    def __init__(
        self,
        parameters: Sequence[Any],
        norms: Norms | None,
        note_fault: Callable[[Exception], None],
    ) -> None:
        self.order: list[torch.Tensor] = []
        self.norm_of: dict[int, int] = {}
        self.is_one_of_many = norms is not None
        self._norms = norms
        self._note_fault = note_fault
        self._handles: list[Any] = []
        # A compiler of backward would make the hooks a part of what it compiles.
        compiler = sys.modules.get("torch._dynamo.compiled_autograd")
        if not getattr(compiler, "compiled_autograd_enabled", False):
            self._handles = [
                one.register_post_accumulate_grad_hook(self._came)
                for one in parameters
                if one.requires_grad and one.is_leaf
            ]

    def _came(self, parameter: torch.Tensor) -> None:
        self.order.append(parameter)
        gradient = parameter.grad
        # Of one that is spread over the processes there is a part, which only they can add up.
        if self._norms is not None and gradient is not None and not hasattr(gradient, "to_local"):
            with HiddenFromProgram(self._note_fault):
                (self.norm_of[id(parameter)],) = self._norms.add([gradient])

    def end(self) -> None:
        # The empty dict stays: torch ends the process where a call in another thread has it in
        # hand when the next one is put in its place.
        for handle in self._handles:
            handle.remove()


def tidy(parameters: Sequence[Any]) -> None:
    """Leave no empty dict where hooks were; where no other thread makes calls, and no further one
    will be heard."""
    for one in parameters:
        if not one._post_accumulate_grad_hooks:
            one._post_accumulate_grad_hooks = None
