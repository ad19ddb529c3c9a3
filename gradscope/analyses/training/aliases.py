"""Things that should be a copy, and are the same object: a target network, an average, the best
state so far.

An edit tells: whoever copies or averages parameters into themselves has one network under two
names.  Looked at once a place, because names are looked up in frames.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType, ModuleType
from typing import Any

import torch
from torch import nn

from gradscope.analyses.training.stores import codes_of, sites_of
from gradscope.autograd.tensors import is_leaf_tensor, storage_of
from gradscope.recording.names import locals_of, value_in_frame
from gradscope.recording.places import frames_from
from gradscope.recording.recorder import Recorder
from gradscope.recording.source import Site
from gradscope.recording.torch_call import TorchCall
from gradscope.recording.wrappers import parameters_in

MAX_PLACES = 1_000
"""Places that are remembered."""

EDITS = frozenset(["copy_", "lerp_", "mul_", "add_", "sub_", "data"])


@dataclass
class KnownAlias:
    """Two names of one thing, where that was noticed, and where the one was given to the other, or
    the state taken.

    ``is_state``: what is loaded into a module is that module's own ``state_dict()``."""

    names: tuple[str, str]
    place: int
    site: Site | None
    is_state: bool = False


class Aliases:
    """All places that were looked at, and what was found there."""

    def __init__(self, recorder: Recorder) -> None:
        self.known: dict[int, KnownAlias] = {}
        self._recorder = recorder
        self._looked: set[int] = set()

    def note_edit(self, call: TorchCall) -> None:
        """A call changes its first operand in place."""
        if call.function not in EDITS or call.user is None or call.place in self._looked:
            return
        target, *values = call.operands
        if not storage_of(target) or len(self._looked) >= MAX_PLACES:
            return
        is_loading = call.frame is not call.user and call.function == "copy_"
        if is_loading:
            # Torch's own code copies a state into a module, tensor by tensor.
            # Torch itself fills in the counter that an old file does not have.
            is_counter = not target.is_floating_point()
            if values and _memory(values[0]) == _memory(target) and not is_counter:
                self._looked.add(call.place)
                self._note_loaded(call)
            return
        self._looked.add(call.place)
        self._note_average(call, _memory(target))

    def _note_loaded(self, call: TorchCall) -> None:
        frame, expression = call.user, self._expression(call)
        if frame is None or "load_state_dict" not in expression:
            return
        modules = {
            path: value
            for path in _paths(expression)
            if _is_module(value := value_in_frame(path, frame))
        }
        names = _same(modules)
        if names is not None:
            self._know(call, names, is_state=False)
        elif len(modules) == 1 and "state_dict()" not in expression.replace("load_state_dict", ""):
            (name,) = modules
            self._know(call, (name, _argument(expression)), is_state=True)

    def _note_average(self, call: TorchCall, memory: tuple[int, int, int]) -> None:
        frame, expression = call.user, self._expression(call)
        if frame is None:
            return
        paths = _paths(expression)
        tensors = {
            path: value
            for path in paths
            if issubclass(type(value := value_in_frame(path, frame)), torch.Tensor)
            # Only what is itself an operand: a step by hand names the parameter and its gradient.
            and f"{path}.grad" not in paths
            and _memory(value) == memory
            and is_leaf_tensor(value)
        }
        # The other name of the tensor that is edited: `t` and `s` in `t.lerp_(s, 0.1)`.
        names = list(tensors)
        if len(names) > 1 and any(one.requires_grad for one in tensors.values()):
            self._know(call, (names[0], names[1]), is_state=False)

    def _know(self, call: TorchCall, names: tuple[str, str], is_state: bool) -> None:
        frames = list(frames_from(call.user, self._recorder.places))
        owner = _owners(frames, call.operands[0]) if not is_state else None
        names = owner or names
        site = self._taken(call) if is_state else None
        site = site or next(self._given(names, frames), None)
        self.known[call.place] = KnownAlias(names, call.place, site, is_state)

    def _taken(self, call: TorchCall) -> Site | None:
        """The line that took the state which is loaded: torch detaches each tensor of it."""
        made = self._recorder.events.made(call.operands[1])
        if made is None or made.site is None or made.function != "detach":
            return None
        expression = self._recorder.sources.origin(made.site).expression
        return made.site if "state_dict()" in expression else None

    def _given(self, names: tuple[str, str], frames: list[FrameType]) -> Iterator[Site]:
        """Lines that give the one name to the other."""
        sources = self._recorder.sources
        for site in sites_of(codes_of(frames)):
            origin = sources.origin(site)
            left, right = _last(origin.variable), _last(origin.expression)
            if left and {left, right} == {_last(name) for name in names} and left != right:
                yield site

    def _expression(self, call: TorchCall) -> str:
        site = call.places.site(call.place)
        return "" if site is None else self._recorder.sources.origin(site).expression


def _memory(tensor: torch.Tensor) -> tuple[int, int, int]:
    return storage_of(tensor), int(tensor.storage_offset()), tensor.numel()


def _paths(expression: str) -> list[str]:
    """The names and attributes in an expression, as far as they are read."""
    try:
        tree = ast.parse(expression.strip())
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Name | ast.Attribute))
    texts = (ast.unparse(node) for node in nodes)
    return list(dict.fromkeys(text for text in texts if re.fullmatch(r"\w+(\.\w+)*", text)))


def _argument(expression: str) -> str:
    found = re.search(r"load_state_dict\(\s*([\w.\[\]'\"]+)", expression)
    return found[1] if found else "the state"


def _same(modules: dict[str, Any]) -> tuple[str, str] | None:
    """Two names of one object."""
    for one, module in modules.items():
        for other, same in modules.items():
            if one != other and module is same:
                return one, other
    return None


def _owners(frames: list[FrameType], parameter: torch.Tensor) -> tuple[str, str] | None:
    """Two names, side by side, of one module that holds this memory."""
    memory = _memory(parameter)
    for scope in _scopes(frames):
        modules = {
            name: value
            for name, value in scope.items()
            if _is_module(value) and any(_memory(one) == memory for one in parameters_in(value))
        }
        names = _same(modules)
        if names is not None:
            return names
    return None


def _scopes(frames: list[FrameType]) -> Iterator[dict[str, Any]]:
    """The variables of each frame, and the attributes of what it calls ``self``; callers first,
    because there the two got their names."""
    for frame in reversed(frames):
        variables = locals_of(frame)
        yield variables
        for name, value in variables.items():
            attributes = _own(value)
            inner = {**attributes, **attributes.get("_modules", {})}
            yield {f"{name}.{key}": item for key, item in inner.items()}


def _own(value: Any) -> dict[str, Any]:
    """The attributes of an object, without running its code."""
    if issubclass(type(value), (type, ModuleType)):
        return {}
    try:
        found = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return {}
    return found if type(found) is dict else {}


def _is_module(value: Any) -> bool:
    # `isinstance` would ask for `__class__`, which may be a property of the program.
    return issubclass(type(value), nn.Module)


def _last(path: str) -> str:
    return path.rpartition(".")[2]
