"""Which ``nn.Module`` call each autograd node was made in.

A wrapper around the one method that all calls of modules go through keeps a stack of them; every
change of the stack is written down beside the sequence number that the next node will get.  Time
alone then tells the call of any node, also of nodes that no recorded torch call explains.  Knows
nothing of expressions, gradients or the Report.
"""

from __future__ import annotations

import inspect
import sys
import weakref
from array import array
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from threading import get_ident
from types import FrameType, FunctionType
from typing import Any

import msgspec
import torch
from torch import compiler, nn

from gradscope.autograd.isolation import Aside
from gradscope.autograd.nodes import sequence_number
from gradscope.autograd.tensors import TensorTable, grad_fn_of
from gradscope.patched import Original
from gradscope.recording.compiler import is_compiling
from gradscope.recording.places import Places
from gradscope.recording.stand_in import module_calls
from gradscope.recording.wrappers import parameters_in, parts_of, plain_path

_functions_off = torch._C.DisableTorchFunction

MAX_PARAMETERS = 1_000_000
"""Parameters whose names are remembered."""

MAX_CALLS = 1_000_000
"""Module calls remembered; older ones are forgotten by halves."""

MOST_RETURNED = 16
"""Parts of what a module returns that are looked at."""

OUTSIDE = -1
"""The call of a node that was made outside every module."""


class ModulePath(msgspec.Struct, frozen=True, gc=False):
    """Where a module sits: which root module it belongs to, and its dotted path from there.

    ``is_library``: its forward is torch's own code, such as that of ``nn.Sequential``.
    """

    root: int
    path: str
    type: str
    is_library: bool


@dataclass
class RootModule:
    """A module that was called while no other was running."""

    module: weakref.ref[nn.Module]
    type: str
    has_parameters: bool


class ModuleTracker:
    """Records the module calls of one thread while started.

    ``roots`` are the modules called while no other was running, by number, ``strays`` those that
    were called in another one without being registered in it.

    Args:
        aside: goes around what is done in the middle of the program.
        places: numbers the places that modules are called at.
    """

    def __init__(self, aside: Callable[[], Aside], places: Places) -> None:
        self.roots: dict[int, RootModule] = {}
        self.strays: list[tuple[weakref.ref[nn.Module], ModulePath]] = []
        self._places: dict[int, tuple[weakref.ref[nn.Module], ModulePath]] = {}
        self._stack: list[int] = []
        self._running: list[nn.Module] = []
        self._first_call = 0
        self._next_root = 0
        self._parents = array("q")
        self._call_places: list[ModulePath] = []
        self._sites = array("q")
        self._results = array("q")
        self._several: dict[int, tuple[int, ...]] = {}
        self._changes = array("q")
        self._changed_to = array("q")
        self._thread = 0
        self._calls = module_calls(self._noting)
        self._parameters: TensorTable[str] = TensorTable(MAX_PARAMETERS)
        self._is_library: dict[type, bool] = {}
        self._aside = aside
        self._numbers = places

    def parameter_name(self, tensor: torch.Tensor) -> str:
        """The name of a parameter in its root module, also when that module is gone."""
        return self._parameters.get(tensor) or ""

    def start(self) -> None:
        """Begin to watch; calls of other threads are not recorded."""
        self._thread = get_ident()
        self._calls.start()

    def stop(self) -> None:
        """Watch no longer; what was recorded stays."""
        self._calls.stop()
        self._thread = 0
        # What is under way would otherwise be around whatever is called after the next start.
        self._stack.clear()
        self._running.clear()

    def call_of(self, sequence: int) -> int:
        """The number of the call in which the node with this sequence number was made."""
        # Where no node was made between two changes they have one number, and the last one counts.
        position = bisect_right(self._changes, sequence) - 1
        return self._changed_to[position] if position >= 0 else OUTSIDE

    def place(self, call: int) -> ModulePath | None:
        """Which module was called, or None when the call is no longer remembered."""
        index = call - self._first_call
        return self._call_places[index] if 0 <= index < len(self._call_places) else None

    def parent(self, call: int) -> int:
        """The call that this one was made in, or :data:`OUTSIDE`."""
        return self._kept(self._parents, call, OUTSIDE)

    def site(self, call: int) -> int:
        """The number of the place in the program that a module was called at; -1 where torch's own
        code called it, as that of ``nn.Sequential`` does."""
        return self._kept(self._sites, call, -1)

    def result(self, call: int) -> tuple[int, ...]:
        """The sequence number of the node that made what a call returned, or of each part of it: -1
        where there is no history, or none that is known."""
        return self._several.get(call) or (self._kept(self._results, call, -1),)

    def _kept(self, column: array[int], call: int, otherwise: int) -> int:
        """What a column holds of a call, while that is remembered."""
        index = call - self._first_call
        return column[index] if 0 <= index < len(column) else otherwise

    def library_call(self, call: int) -> int:
        """The outermost call of this one and those around it that runs torch's code only.

        That is the one which the program's own code made: ``model(x)`` for every layer inside an
        ``nn.Sequential``.  :data:`OUTSIDE` when the call runs code of the program itself.
        """
        found = OUTSIDE
        while call != OUTSIDE:
            place = self.place(call)
            if place is None or not place.is_library:
                break
            found, call = call, self.parent(call)
        return found

    @property
    def is_running(self) -> bool:
        return bool(self._running)

    @property
    def running(self) -> tuple[nn.Module, ModulePath] | None:
        """The innermost module whose call is under way."""
        place = self.place(self._stack[-1]) if self._stack else None
        return None if place is None else (self._running[-1], place)

    def met(self) -> Iterator[tuple[nn.Module, ModulePath]]:
        """The modules that still live, with their places."""
        for reference, place in self._places.values():
            module = reference()
            if module is not None:
                yield module, place

    def called(self) -> set[int]:
        """The ``id`` of each module that still lives and has been called; of all that are known,
        once calls have been forgotten."""
        places = set(map(id, self._call_places))
        return {
            id(module) for module, place in self.met() if self._first_call or id(place) in places
        }

    def _noting(self, original: Original) -> Original:
        # Taken once: every call of a module comes by here.
        known, stack, running, places = self._places, self._stack, self._running, self._call_places
        changes, changed_to, parents = self._changes, self._changed_to, self._parents
        sites, results, called_at = self._sites, self._results, self._called_at
        note_result = self._note_result

        def _call_impl(module: nn.Module, /, *args: Any, **kwargs: Any) -> Any:
            # What is compiled would otherwise hold a call of ours.
            if is_compiling() or compiler._is_compiling_flag or get_ident() != self._thread:
                return original(module, *args, **kwargs)
            entry = known.get(id(module))
            place = entry[1] if entry is not None and entry[0]() is module else self._met(module)
            if place is None:
                return original(module, *args, **kwargs)
            around = self.place(stack[-1]) if stack else None
            by_library = around is not None and around.is_library
            site = -1 if by_library else called_at(module, sys._getframe(1))
            # Numbers go on counting when the oldest calls are forgotten.  After the site: whatever
            # the collector runs meanwhile may call modules, too.
            call = self._first_call + len(places)
            try:
                sites.append(site)
                results.append(-1)
                places.append(place)
                parents.append(stack[-1] if stack else OUTSIDE)
                stack.append(call)
                running.append(module)
                # The next node will get this number: it and those after it belong to this call.
                changes.append(sequence_number())
                changed_to.append(call)
                if len(places) > MAX_CALLS:
                    self.keep_last(MAX_CALLS // 2)
                returned = original(module, *args, **kwargs)
                if call >= self._first_call:
                    note_result(call, returned)
                return returned
            finally:
                # What was under way at a stop has left already.
                if stack and stack[-1] == call:
                    stack.pop()
                    del running[len(stack) :]
                    changes.append(sequence_number())
                    changed_to.append(stack[-1] if stack else OUTSIDE)

        return _call_impl

    def _note_result(self, call: int, returned: Any) -> None:
        # The getters of a tensor would be heard by a mode of the program.
        with _functions_off():
            if type(returned) is torch.Tensor:
                self._results[call - self._first_call] = _made_by(returned)
            elif issubclass(type(returned), PLAIN):
                parts = islice(items_of("", returned), MOST_RETURNED)
                made = tuple(_made_by(part) for _, part in parts)
                if max(made, default=-1) >= 0:
                    self._several[call] = made

    def _called_at(self, module: nn.Module, frame: FrameType | None) -> int:
        """The number of the place in the program that a module is called at; -1 for none."""
        caller = self._numbers.user_frame(frame)
        # A class whose own `__call__` hands the call on is called by who calls that.
        while caller is not None and caller.f_code.co_name == "__call__":
            own = (vars(one).get("__call__") for one in type(module).__mro__)
            # Of anything else a question could run code of the program.
            codes = (one.__code__ for one in own if isinstance(one, FunctionType))
            if all(code is not caller.f_code for code in codes):
                break
            caller = self._numbers.user_frame(caller.f_back)
        return -1 if caller is None else self._numbers.number(caller)

    def _met(self, module: nn.Module) -> ModulePath | None:
        place = None
        # Its parameters are asked for their names.
        with self._aside():
            place = self._place_of(module)
        return place

    def living_roots(self) -> Iterator[nn.Module]:
        """The modules called while no other was running that still live."""
        modules = (root.module() for root in list(self.roots.values()))
        return (module for module in modules if module is not None)

    def keep_last(self, count: int) -> None:
        """Forget all but so many calls, once there are twice as many."""
        old = len(self._call_places) - count
        if old < count:
            return
        del self._call_places[:old]
        del self._parents[:old]
        del self._sites[:old]
        del self._results[:old]
        self._first_call += old
        kept = self._several.items()
        self._several = {call: parts for call, parts in kept if call >= self._first_call}
        # Every call changed the stack twice.
        changes = max(0, len(self._changes) - 2 * count)
        del self._changes[:changes]
        del self._changed_to[:changes]
        self._forget_dead()

    def _forget_dead(self) -> None:
        """Forget the modules that are gone and that no call is remembered of: some programs make
        one for each call."""
        called = {place.root for place in self._call_places}
        for number, root in list(self.roots.items()):
            if number not in called and root.module() is None:
                del self.roots[number]
        self.strays = [one for one in self.strays if one[0]() is not None]
        dead = [key for key, (module, _) in self._places.items() if module() is None]
        for key in dead:
            del self._places[key]

    def _place_of(self, module: nn.Module) -> ModulePath:
        known = self._known(module)
        if known is not None:
            return known
        if not self._running:
            return self._add_root(module)
        # Not registered below the root when that was entered: added since, or held in a plain list.
        parent = self._running[-1]
        around, name = self._place_of(parent), _name_within(parent, module)
        path = f"{around.path}.{name}" if around.path else name
        place = self._place(around.root, path, module)
        self.strays.append((weakref.ref(module), place))
        return self._remember(module, place)

    def _known(self, module: nn.Module) -> ModulePath | None:
        known = self._places.get(id(module))
        # An id may have been given to another module since.
        return known[1] if known is not None and known[0]() is module else None

    def _add_root(self, module: nn.Module) -> ModulePath:
        # All modules below are named at once: asking each for its path would be quadratic.
        number, self._next_root = self._next_root, self._next_root + 1
        has_parameters = next(parameters_in(module), None) is not None
        self.roots[number] = RootModule(weakref.ref(module), type(module).__name__, has_parameters)
        for full, child in parts_of(module):
            path = plain_path(module, full)
            # A part that was called by itself before keeps the place that its nodes already have.
            if self._known(child) is None:
                self._remember(child, self._place(number, path, child))
            prefix = f"{path}." if path else ""
            # As they are registered: torch's own way to list them takes several times as long.
            for name, tensor in child._parameters.items():
                # A shared parameter has the name under which it is met first.
                if tensor is not None and tensor not in self._parameters:
                    self._parameters[tensor] = prefix + name
        return self._places[id(module)][1]

    def _place(self, root: int, path: str, module: nn.Module) -> ModulePath:
        kind = type(module)
        is_library = self._is_library.get(kind)
        if is_library is None:
            # Not asked by attribute: a ScriptModule's own would answer, and raise.  A forward that
            # was generated, as torch.fx does, belongs to no module.
            forward = inspect.getattr_static(kind, "forward", None)
            written_in = str(getattr(forward, "__module__", ""))
            is_library = self._is_library[kind] = written_in.startswith("torch.nn.")
        return ModulePath(root, path, kind.__name__, is_library)

    def _remember(self, module: nn.Module, place: ModulePath) -> ModulePath:
        self._places[id(module)] = (weakref.ref(module), place)
        return place


def _made_by(part: Any) -> int:
    """The sequence number of the node that made a tensor, -1 where there is none; -2 of what is no
    tensor and may hold some."""
    if type(part) is not torch.Tensor:
        return -2 if issubclass(type(part), PLAIN) else -1
    node = grad_fn_of(part)
    # What arrives at one of several outputs is not what arrives at the node.
    return -1 if node is None else -2 if part.output_nr else int(node._sequence_nr())


def _name_within(parent: nn.Module, module: nn.Module) -> str:
    """How a running module would write another one: ``blocks[0]``; its class where it cannot."""
    for name, child in (*parts_of(parent), *attributes_of(parent)):
        if child is module:
            return str(name)
    return type(module).__name__


MAX_ITEMS = 20_000
"""Items of a list or dict that are looked at."""

PLAIN: tuple[Any, ...] = (list, tuple, deque, dict)


def items_of(name: str, container: Any) -> Iterator[tuple[str, Any]]:
    """What a list, tuple, deque or dict of this name holds, with the expression that leads to each;
    nothing of any other value."""
    kind = next((one for one in PLAIN if issubclass(type(container), one)), None)
    if kind is not None:
        # The methods of the plain kinds: those of a subclass are code of the program.
        items = dict.items(container) if kind is dict else enumerate(kind.__iter__(container))
        for at, one in islice(items, MAX_ITEMS):
            if type(at) in (str, int):
                yield f"{name}[{at!r}]", one


def attributes_of(module: nn.Module, path: str = "") -> Iterator[tuple[str, Any]]:
    """What a module at this path keeps in attributes, and in lists and dicts that are such."""
    for key, value in list(vars(module).items()):
        name = f"{path}.{key}" if path else str(key)
        yield name, value
        # What `nn.Module` keeps itself, such as `_modules`, has such a name.
        if not (issubclass(type(value), dict) and str(key).startswith("_")):
            yield from items_of(name, value)
