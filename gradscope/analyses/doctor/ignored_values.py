"""What a function of the program is given, and reads nowhere: the flag that says where an episode
ends, beside a reward and a discounted value of the next state; a mask, around an attention that
masks nothing; the index that stands for padding, where that is looked up or counted in a loss.

Which names a function reads is asked of its text, once; what they hold at some of its calls.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import Any, NamedTuple

import torch

from gradscope.analyses.doctor.attentions import Attention, attention_of
from gradscope.analyses.doctor.oddity_finder import FinderContext, OddityFinder
from gradscope.autograd.elements import is_small
from gradscope.autograd.tensors import is_learned_leaf
from gradscope.model.observations import OddityKind
from gradscope.recording.names import locals_of
from gradscope.recording.rebound import names_read
from gradscope.recording.torch_call import TorchCall

LOOKS = 50
"""Times that the values of one name are looked at."""

LARGEST = 1_000_000
"""Elements that are read of a value."""

LEAST_DISCOUNT = 0.8
"""A number from here to below 1, beside a reward, is a discount."""

MOST_FRAMES = 60
"""Calls around an attention that are asked for a mask."""

_LOOKUPS = ("embedding", "index_select", "getitem")
_OF_CLASSES = ("cross_entropy", "nll_loss")

_END = re.compile(r"(.*_|is)?(done|terminal|terminated)s?(_.*)?", re.IGNORECASE)
_REWARD = re.compile(r"(.*_)?(r|rew|rewards?)(_.*)?|reward.*", re.IGNORECASE)
_NEXT = re.compile(r".*(next|prime).*|(.*_)?new_.*|s2|ns|s_", re.IGNORECASE)
_DISCOUNT = re.compile(r".*(gamma|discount).*", re.IGNORECASE)
_WEIGHT = re.compile(r"(.*_)?(mask|discount|nonterminal|non_final|continue)s?(_.*)?", re.IGNORECASE)
_ROW = re.compile(r"(pad|padding|ignore)(_token)?_(id|idx|index)")
_MASK = re.compile(r"(.*_)?masks?|(.*_)?(attention|attn)_bias")


class _Ignored(NamedTuple):
    """A name that nothing reads, in this file, and the line where it was wanted or is given."""

    kind: OddityKind
    name: str
    file: str
    line: int


class IgnoredValues(OddityFinder):
    """Such names, by the function that has them."""

    def __init__(self, context: FinderContext) -> None:
        super().__init__(context)
        self._codes: dict[int, tuple[CodeType, list[_Ignored]]] = {}
        self._looks: dict[_Ignored, int] = {}

    def note(self, call: TorchCall) -> None:
        """Look at one call."""
        frame = call.user
        if frame is None:
            return
        for one in self._of(call, frame):
            if one.kind == "end ignored" and _is_mixed(self._value(frame, one)):
                line = call.places.number_of_line(frame.f_code, one.line)
                self._tell(one.kind, line, name=one.name)
            elif one.kind == "row ignored" and call.function in (*_LOOKUPS, *_OF_CLASSES):
                self._note_row(call, one.name, self._value(frame, one))
        found = attention_of(call) if call.in_graph else None
        # One that leaves anything out has a mask.
        keys = 0 if found is None or not _is_whole(found) else found.keys
        for _ in range(MOST_FRAMES if keys > 1 else 0):
            if frame is None:
                break
            for one in self._of(call, frame):
                mask = self._value(frame, one) if one.kind == "mask ignored" else None
                if _is_mixed(mask) and getattr(mask, "shape", ())[-1:] == (keys,):
                    given = call.places.number_of_line(frame.f_code, one.line)
                    self._tell(one.kind, call.place, name=one.name, other=given)
            frame = frame.f_back

    def _note_row(self, call: TorchCall, name: str, row: Any) -> None:
        """Whether indices of a weight, or targets of a loss, hold what is to be left out."""
        given = [one for one in call.operands if not one.is_floating_point()]
        told = {one for one in (*call.args, *call.kwargs.values()) if type(one) is int}
        is_own = call.function in _LOOKUPS and any(map(is_learned_leaf, call.operands))
        is_it = is_own or (call.function in _OF_CLASSES and row not in told)
        if type(row) is int and is_it and given and is_small(given[0], LARGEST):
            times = int((given[0] == row).sum())
            if times:
                self._tell("row ignored", call.place, row, times, given[0].numel(), name=name)

    def _value(self, frame: FrameType, one: _Ignored) -> Any:
        """What the name stands for, unless that was looked at often enough."""
        value = locals_of(frame).get(one.name) if self._looks.get(one, 0) < LOOKS else None
        self._looks[one] = self._looks.get(one, 0) + (value is not None)
        return value

    def _of(self, call: TorchCall, frame: FrameType) -> list[_Ignored]:
        code = frame.f_code
        known = self._codes.get(id(code))
        if known is None:
            found = list(self._ignored(code)) if call.places.is_own(code) else []
            known = self._codes[id(code)] = code, found
        return known[1]

    def _ignored(self, code: CodeType) -> Iterator[_Ignored]:
        given = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        masks = list(filter(_MASK.fullmatch, given))
        names = code.co_names if code.co_name == "<module>" else code.co_varnames
        ends = set(filter(_END.fullmatch, names))
        rows = list(filter(_ROW.fullmatch, given))
        if not (masks or ends or rows):
            return
        first, lines = self._recorder.sources.lines_of(code)
        try:
            tree = ast.parse("\n".join(lines))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return
        read = names_read(tree)
        for name in masks:
            if not {name, "locals"} & read:
                yield _Ignored("mask ignored", name, code.co_filename, first)
        for name in rows:
            if not {name, "locals"} & read:
                yield _Ignored("row ignored", name, code.co_filename, first)
        line = _target(tree)
        weights = set(filter(_WEIGHT.fullmatch, names)) - ends
        unread = sorted(_unread(tree, ends) if line and not weights & read else ())
        for name in unread:
            yield _Ignored("end ignored", name, code.co_filename, first + line - 1)


def _target(tree: ast.AST) -> int:
    """The line of the statement that adds a reward and what is discounted, in a function that uses
    the next state; 0 where there is none."""
    if not any(map(_NEXT.fullmatch, _words(tree))):
        return 0
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.Return) and node.value is not None:
            words = _words(node.value)
            factors = (getattr(one, "value", None) for one in ast.walk(node.value))
            is_discounted = any(map(_DISCOUNT.fullmatch, words)) or any(
                isinstance(one, float) and LEAST_DISCOUNT <= one < 1 for one in factors
            )
            if is_discounted and any(map(_REWARD.fullmatch, words)):
                return node.lineno
    return 0


def _words(tree: ast.AST) -> list[str]:
    """The names and the attributes in a tree."""
    return [getattr(one, "attr", getattr(one, "id", "")) for one in ast.walk(tree)]


def _unread(tree: ast.AST, names: set[str]) -> set[str]:
    """Those of some names that nothing reads, but for what gives them another form; and nothing
    reads that."""
    assigned = (one for one in ast.walk(tree) if isinstance(one, ast.Assign))
    own = [one for one in assigned if _gives(one) <= names]
    inside = {id(node) for one in own for node in ast.walk(one)}
    reads = (one for one in ast.walk(tree) if isinstance(one, ast.Name) and id(one) not in inside)
    read = {one.id for one in reads if not isinstance(one.ctx, ast.Store)}
    for _ in names:
        read = read.union(*(names_read(one.value) for one in own if _gives(one) & read))
    return names - read


def _gives(node: ast.Assign) -> set[str]:
    """The names that an assignment gives a value."""
    inner = (one for target in node.targets for one in ast.walk(target))
    return {one.id for one in inner if isinstance(one, ast.Name)}


def _is_whole(attention: Attention) -> bool:
    seen = attention.seen
    return seen is None or (is_small(seen, LARGEST) and bool(seen.all()))


def _is_mixed(value: Any) -> bool:
    """Whether something holds both what is zero and what is not."""
    if isinstance(value, torch.Tensor):
        return is_small(value, LARGEST) and bool(value.any()) and not bool(value.all())
    if type(value).__module__ == "numpy" and getattr(value, "dtype", None) is not None:
        return value.dtype.kind in "biuf" and bool(value.any()) and not bool(value.all())
    is_plain = isinstance(value, (list, tuple)) and len(value) <= LARGEST
    return is_plain and len({bool(one) for one in value if type(one) in (bool, int, float)}) == 2
