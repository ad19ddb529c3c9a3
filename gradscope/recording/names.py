"""What the program calls its tensors and modules: variables, attribute paths, parameter names.

Looks into frames and containers without running any of the program's code: no property, no
``__getattr__``, no ``__getitem__`` of a user's class.  Knows nothing of graphs.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from types import FrameType, ModuleType
from typing import Any

import torch
from torch import nn

from gradscope.autograd.tensors import is_leaf_tensor
from gradscope.recording.modules import (
    MAX_ITEMS,
    PLAIN,
    ModulePath,
    ModuleTracker,
    RootModule,
    items_of,
)
from gradscope.recording.wrappers import (
    ShardedParameter,
    joined,
    parameters_in,
    parts_of,
    plain_path,
    sharded_parameters,
)

MAX_DEPTH = 3
"""How many attributes or items deep a variable is searched for tensors."""

_MISSING = object()
_UNNAMED = re.compile(r"__.*|_", re.DOTALL)
_OF_IPYTHON = re.compile(r"__.*|_(\d*|oh|ih|dh|i+\d*)", re.DOTALL)
"""What IPython calls its results and inputs, where ``Out[3]`` says more."""


# ---------------------------------------------------------------- one path in one frame


def name_in_frame(tensor: torch.Tensor, paths: Sequence[str], frame: FrameType) -> str:
    """The first of the dotted paths that leads to this very tensor from the frame, or ""."""
    scope = locals_of(frame)
    return next((path for path in paths if _resolve(path, scope, frame.f_globals) is tensor), "")


def variable_in_frame(tensor: torch.Tensor, paths: Sequence[str], frame: FrameType) -> str:
    """The first of the dotted paths that leads to this very tensor from the frame, or "".  Of
    several variables that hold it, the first: after ``y = x`` the name ``y`` may soon hold another.
    """
    name = name_in_frame(tensor, paths, frame)
    scope = locals_of(frame)
    if name not in scope:
        return name
    # `globals()` takes any key, and a shell has names of its own for results.
    held = (one for one, value in scope.items() if value is tensor and isinstance(one, str))
    return next((one for one in held if not _OF_IPYTHON.fullmatch(one)), name)


def value_in_frame(path: str, frame: FrameType) -> Any:
    """What a dotted path leads to from the frame; an object of no meaning when it leads nowhere."""
    return _resolve(path, locals_of(frame), frame.f_globals)


def value_at(path: str, namespace: Mapping[str, Any]) -> Any:
    """What a text leads to if it is a path of names, attributes and items; else an object of no
    meaning."""
    try:
        return _resolve(path, namespace, {})
    except (SyntaxError, ValueError, AttributeError, RecursionError, MemoryError):
        return _MISSING


def locals_of(frame: FrameType) -> dict[str, Any]:
    """A copy of a frame's local variables that leaves no reference to them behind."""
    live = frame.f_locals
    copy = dict(live)
    # Before 3.13 f_locals is a snapshot that stays on the frame, and would keep a whole graph
    # alive. A debugger writes the snapshot back, so under one it has to stay.
    is_snapshot = sys.version_info < (3, 13) and live is not frame.f_globals
    if is_snapshot and frame.f_trace is None and sys.gettrace() is None and _is_function(frame):
        live.clear()
    return copy


def _is_function(frame: FrameType) -> bool:
    newlocals = 0x2  # CO_NEWLOCALS: only such frames have fast locals, of which f_locals is a copy
    optimized = 0x1
    return frame.f_code.co_flags & (newlocals | optimized) == newlocals | optimized


def _resolve(path: str, scope: Mapping[str, Any], outer: Mapping[str, Any]) -> Any:
    first, steps = _parsed(path)
    value = scope.get(first, outer.get(first, _MISSING))
    for step in steps:
        if isinstance(step, ast.Attribute):
            value = _attribute(value, step.attr)
        else:
            index = step.slice
            key = index.value if isinstance(index, ast.Constant) else scope.get(index.id, _MISSING)
            value = _item(value, key)
    return value


@lru_cache(maxsize=4_096)
def _parsed(path: str) -> tuple[str, tuple[Any, ...]]:
    """The variable that a path begins with, and the attributes and items that follow."""
    node: Any = ast.parse(path, mode="eval").body
    steps: list[Any] = []
    while not isinstance(node, ast.Name):
        steps.append(node)
        node = node.value
    return node.id, tuple(reversed(steps))


def _attribute(owner: Any, name: str) -> Any:
    own = _own_attributes(owner)
    if name in own:
        return own[name]
    # nn.Module finds these by `__getattr__`, which may be the program's own here.
    tables = ("_parameters", "_buffers", "_modules") if isinstance(owner, nn.Module) else ()
    found = (own[table][name] for table in tables if name in own.get(table, {}))
    return next(found, _MISSING)


def _item(owner: Any, key: Any) -> Any:
    if isinstance(owner, (nn.ParameterList, nn.ParameterDict, nn.ModuleList, nn.ModuleDict)):
        return _attribute(owner, str(key))
    kind: Any = next((one for one in PLAIN if issubclass(type(owner), one)), None)
    if kind is None:
        return _MISSING
    try:
        # A defaultdict would make what it does not hold.
        return dict.get(owner, key, _MISSING) if kind is dict else kind.__getitem__(owner, key)
    except (LookupError, TypeError):
        return _MISSING


def _own_attributes(owner: Any) -> dict[str, Any]:
    if issubclass(type(owner), (type, ModuleType, torch.Tensor)):
        return {}
    own = getattr(owner, "__dict__", None) if _has_plain_dict(owner) else None
    return own if isinstance(own, dict) else {}


def _has_plain_dict(owner: Any) -> bool:
    # An instance dict is read through its type's own descriptor; a class that fakes __dict__ is
    # left alone.
    return any("__dict__" in vars(base) for base in type(owner).__mro__)


# ---------------------------------------------------------------- everything in scope


@dataclass
class Scopes:
    """The variables a point of the program can see, nearest first, and what they lead to.

    ``tensors`` maps ``id`` of a tensor to its names, shortest way first; ``modules`` likewise.  The
    objects themselves are held, so that the ids stay good.
    """

    namespaces: list[Mapping[str, Any]]
    tensors: dict[int, list[str]] = field(default_factory=dict)
    modules: dict[int, tuple[str, nn.Module]] = field(default_factory=dict)
    _held: list[torch.Tensor] = field(default_factory=list)

    @classmethod
    def of_frames(cls, frames: Iterable[FrameType]) -> Scopes:
        """The locals and globals of frames, innermost first."""
        namespaces: list[Mapping[str, Any]] = []
        for frame in frames:
            if frame.f_locals is not frame.f_globals:
                namespaces.append(locals_of(frame))
            if all(known is not frame.f_globals for known in namespaces):
                namespaces.append(frame.f_globals)
        return cls.of_namespaces(namespaces)

    @classmethod
    def of_namespaces(cls, namespaces: list[Mapping[str, Any]]) -> Scopes:
        """Search namespaces breadth first, so that a variable comes before what it contains."""
        scopes = cls([_variables(namespace) for namespace in namespaces])
        queue: deque[tuple[str, Any, int]] = deque()
        for namespace in scopes.namespaces:
            unnamed = _OF_IPYTHON if "_oh" in namespace else _UNNAMED
            queue.extend(
                (name, value, 0)
                for name, value in list(namespace.items())
                if not unnamed.fullmatch(name)
            )
        scopes._search(queue)
        return scopes

    def names(self, tensor: torch.Tensor) -> list[str]:
        """All names of a tensor, the shortest way first."""
        return self.tensors.get(id(tensor), [])

    def add(self, name: str, tensor: torch.Tensor) -> None:
        """Give a tensor that no variable holds a name."""
        self.tensors.setdefault(id(tensor), []).append(name)
        self._held.append(tensor)

    def merged(self, position: int = 0) -> dict[str, Any]:
        """All variables in one namespace, as code at this point sees them: its own with those
        further out, and the globals."""
        found: dict[str, Any] = {}
        for namespace in reversed(self.namespaces[position:]):
            found.update(namespace)
        return found

    def held_tensors(self) -> Iterator[torch.Tensor]:
        """Every tensor found, each once for each way that leads to it."""
        return iter(self._held)

    def variable_names(self) -> list[str]:
        """The names of variables that hold tensors, for "did you mean"."""
        return [names[0] for names in self.tensors.values()]

    def _search(self, queue: deque[tuple[str, Any, int]]) -> None:
        seen: set[int] = set()
        lists: list[tuple[str, Sequence[Any]]] = []
        looked = 0
        while queue and looked < MAX_ITEMS:
            looked += 1
            name, value, depth = queue.popleft()
            # `isinstance` would ask for `__class__`, which may be a property of the program.
            if issubclass(type(value), torch.Tensor):
                known = self.tensors.setdefault(id(value), [])
                if name not in known:
                    known.append(name)
                self._held.append(value)
                continue
            if id(value) in seen:
                continue
            if issubclass(type(value), nn.Module):
                self.modules.setdefault(id(value), (name, value))
            seen.add(id(value))
            if type(value) in (list, tuple) and len(value) > 1:
                lists.append((name, value))
            if depth < MAX_DEPTH:
                queue.extend((path, child, depth + 1) for path, child in _children(name, value))
        for name, members in lists:
            self._name_alike(name, members)

    def _name_alike(self, name: str, members: Sequence[Any]) -> None:
        """Call the one module or leaf of a list that a variable holds, that of a loop over the
        list, as the others are called."""
        variables = []
        for number, one in enumerate(islice(members, MAX_ITEMS)):
            is_named = id(one) in self.modules or (id(one) in self.tensors and is_leaf_tensor(one))
            path, known = f"{name}[{number}]", self.name_of(one) if is_named else ""
            if known.isidentifier():
                variables.append((path, one))
            elif known != path:
                return  # it has a better name, or none
        if len(variables) != 1:
            return
        [(path, member)] = variables
        if id(member) in self.modules:
            self.modules[id(member)] = path, member
        else:
            self.tensors[id(member)].insert(0, path)

    def name_of(self, value: Any) -> str:
        """The shortest name of a module or a tensor, or ""."""
        return self.modules.get(id(value), ("", None))[0] or next(iter(self.names(value)), "")


def _variables(namespace: Mapping[str, Any]) -> Mapping[str, Any]:
    """A namespace without what no variable can be called: a program may put anything into one."""
    if all(isinstance(name, str) for name in list(namespace)):
        return namespace
    return {name: value for name, value in list(namespace.items()) if isinstance(name, str)}


def _children(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if issubclass(type(value), nn.Module):
        return  # its parameters are named by named_parameters
    if issubclass(type(value), PLAIN):
        yield from items_of(name, value)
    else:
        yield from ((f"{name}.{key}", child) for key, child in list(_own_attributes(value).items()))


# ---------------------------------------------------------------- modules and their parameters


class ModuleNames:
    """Dotted paths of modules and names of parameters, as the program's author would write them.

    With one root module its paths need no prefix (``fc1.weight``); with several, each is prefixed
    with the variable that holds it (``student.fc1.weight``), or its class where no variable does.
    """

    def __init__(self, scopes: Scopes, tracker: ModuleTracker) -> None:
        self._roots = tracker.roots
        owners = self._find_owners(scopes, tracker.roots.values())
        holding = sum(1 for _, module in owners if _has_parameters(module))
        alone = holding == 1
        # One that a function made is gone when that has returned; it may have been the only one.
        gone = [
            one for one in tracker.roots.values() if one.has_parameters and one.module() is None
        ]
        self._nameless = gone[0] if gone and holding + len(gone) == 1 else None
        self.paths: dict[int, str] = {}
        self.parameters: dict[int, list[str]] = {}
        self.owners = owners
        for name, module in owners:
            self._add(module, "" if alone and _has_parameters(module) else name)
        for reference, place in tracker.strays:
            stray = reference()
            if stray is not None:
                self._add(stray, self.path(place))

    def path(self, place: ModulePath) -> str:
        """The dotted path of a recorded place; the class name where a root has no name."""
        root = self._roots.get(place.root)
        if root is None:  # gone, with all calls of it
            return place.path
        module = root.module()
        prefix = "" if root is self._nameless else root.type
        if module is not None:
            prefix = self.paths.get(id(module), prefix)
        return joined(prefix, place.path)

    def _find_owners(
        self, scopes: Scopes, roots: Iterable[RootModule]
    ) -> list[tuple[str, nn.Module]]:
        found = dict(scopes.modules)
        for root in roots:
            module = root.module()
            if module is not None:
                found.setdefault(id(module), (root.type, module))
        # One that was copied in part, or made without its __init__, holds nothing.
        found = {key: one for key, one in found.items() if "_modules" in vars(one[1])}
        if len(found) < 2:
            return list(found.values())
        inner = {
            id(child)
            for _, module in found.values()
            for _, child in parts_of(module)
            if child is not module
        }
        return [(name, module) for key, (name, module) in found.items() if key not in inner]

    def never_called(self, tracker: ModuleTracker) -> list[str]:
        """The paths of modules that were never called, though others of their ``nn.ModuleList`` or
        ``nn.ModuleDict`` were: an expert to which no token was sent."""
        called = tracker.called()
        every = (part for _, owner in self.owners for _, part in parts_of(owner))
        found: list[str] = []
        for holder in every:
            if not isinstance(holder, nn.ModuleList | nn.ModuleDict):
                continue
            members = [one for one in holder._modules.values() if one is not None]
            if any(id(one) in called for one in members):
                found += [
                    self.paths[id(one)]
                    for one in members
                    if not any(id(part) in called for _, part in parts_of(one))
                    and _has_parameters(one)
                ]
        return found

    def _add(self, module: nn.Module, prefix: str) -> None:
        whole: list[ShardedParameter] = []
        may_be_sharded = "torch.distributed.fsdp" in sys.modules
        # A shared part, and what is in it, has all of its names.
        for path, child in parts_of(module, each_once=False):
            known = joined(prefix, plain_path(module, path))
            self.paths.setdefault(id(child), known)
            for name, tensor in child._parameters.items():
                if tensor is not None:
                    self._name(tensor, f"{known}.{name}" if known else name)
            if may_be_sharded:
                whole.extend(sharded_parameters(child))
        for one in whole:
            self._name(one.whole, joined(self.paths.get(id(one.owner), prefix), one.name))

    def _name(self, tensor: torch.Tensor, name: str) -> None:
        names = self.parameters.setdefault(id(tensor), [])
        if name not in names:
            names.append(name)


def _has_parameters(module: nn.Module) -> bool:
    return next(parameters_in(module), None) is not None
