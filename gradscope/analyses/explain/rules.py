"""The rule behind each node: torch's formula, the lines of a custom backward, or why neither.

Nothing is invented: a node that is in no table says so. Torch's formulas stand in its
``derivatives.yaml``; torchgen reads it and knows which node each entry becomes. That takes seconds,
so the table is kept in a file, one for each version of torch. Losing that file costs those seconds,
and no more.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import torch
from torch.autograd.function import BackwardCFunction

from gradscope.analyses.explain.pull import Puller, backward_code
from gradscope.autograd.nodes import is_nested, op_name, outputs_of, slots_of
from gradscope.autograd.numbers import SMALL, plain
from gradscope.autograd.summary import flat_values, measure
from gradscope.handlers import let_pass
from gradscope.model.explanation import Amount, DerivativeRule, Formula, Listing, Local
from gradscope.model.plain import Number, Struct, number
from gradscope.recording.source import Sources

LAYOUT = 1
"""Version of the kept table."""


class FormulaEntry(Struct, frozen=True):
    """The rule of a node class, and the arguments its input slots stand for in order; an argument
    in ``lists`` is a list of tensors and takes several slots."""

    rule: DerivativeRule
    arguments: tuple[str, ...]
    lists: tuple[str, ...] = ()


class FormulaTable(Struct, frozen=True):
    """All formulas of one torch; ``missing`` says why there are none."""

    entries: dict[str, FormulaEntry]
    missing: str = ""


def formulas(cache: str) -> FormulaTable:
    """The formulas of the torch that is installed.

    Args:
        cache: the folder to keep them in; "" for nowhere.
    """
    path = Path(cache) / f"derivatives-{torch.__version__}-{LAYOUT}.json" if cache else None
    kept = _read(path) if path else None
    if kept is not None:
        return kept
    try:
        table = _load()
    except Exception as error:  # whatever torchgen of another torch may stumble over
        let_pass(error)
        reason = f"{type(error).__name__}: {error}"
        if isinstance(error, ImportError) and error.name == "yaml":
            reason = "PyYAML is not installed (pip install pyyaml)"
        return FormulaTable({}, f"torch's derivatives.yaml could not be read: {reason}")
    if path is not None:
        # A folder that cannot be written is no error, nor is a file that was cut off: it is read as
        # none.
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(msgspec.json.encode(table))
    return table


def _read(path: Path) -> FormulaTable | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=FormulaTable)
    except (OSError, msgspec.DecodeError):
        return None


def _load() -> FormulaTable:
    import torchgen
    from torchgen.packaged.autograd.load_derivatives import load_derivatives

    base = Path(torchgen.__file__).parent / "packaged"
    native = base / "ATen" / "native"
    infos, _ = load_derivatives(
        str(base / "autograd" / "derivatives.yaml"),
        str(native / "native_functions.yaml"),
        str(native / "tags.yaml"),
    )
    found = (info for by_key in infos.values() for info in by_key.values())
    return FormulaTable({info.op: _entry(info) for info in found if info.op})


def _entry(info: Any) -> FormulaEntry:
    arguments = [(one.name, str(one.type)) for one in info.args_with_derivatives]
    written = [Formula(tuple(one.var_names), one.original_formula) for one in info.derivatives]
    # In the order in which the function takes them, not in that of the file.
    order = [name for name, _ in arguments]
    written.sort(key=lambda one: min(order.index(name) for name in one.arguments))
    return FormulaEntry(
        DerivativeRule(info.op, str(info.func.func), tuple(written)),
        tuple(order),
        tuple(name for name, kind in arguments if "List" in kind),
    )


BY_HAND = {
    "CopySlices": "in-place write into a view: what was written gets the gradient of its place, "
    "the tensor that was overwritten gets zero there",
    "CopyBackwards": "copy_: the source gets grad in its own dtype and on its own device, what was "
    "overwritten gets zeros",
    "UndefinedGradBackward": "passes on no gradient",
    "NotImplemented": "torch has no derivative for this operation",
}
"""What nodes do that are written by hand in torch's C++ and so in no table; in our words."""

MOST_LINES = 30
"""Lines shown of a custom backward."""


class Rules:
    """The rules of the nodes that were asked for, each once.

    Args:
        table: torch's formulas.
        sources: finds the text of the program's code.
    """

    def __init__(self, table: FormulaTable, sources: Sources) -> None:
        self._table = table
        self._sources = sources
        self._numbers: dict[str, int] = {}
        self.rules: list[DerivativeRule] = []

    def number(self, node: Any) -> int:
        """The index of the rule of a live node."""
        op = op_name(node)
        known = self._numbers.get(op)
        if known is None:
            known = self._numbers[op] = len(self.rules)
            self.rules.append(self._rule(op, node))
        return known

    def arguments(self, node: Any) -> tuple[str, ...]:
        """The forward function's argument behind each input slot, as far as that is known."""
        slots = len(node.next_functions)
        entry = self._table.entries.get(op_name(node))
        if entry is None or isinstance(node, BackwardCFunction):
            return ()
        room = slots - (len(entry.arguments) - len(entry.lists))
        if len(entry.lists) > 1 or (not entry.lists and room != 0) or room < 0:
            return ()
        names: list[str] = []
        for name in entry.arguments:
            in_list = name in entry.lists
            names += [f"{name}[{i}]" for i in range(room)] if in_list else [name]
        return tuple(names)

    def listing(self, node: Any) -> Listing | None:
        """The lines of a custom Function's own backward, where its text is at hand."""
        code = backward_code(node) if isinstance(node, BackwardCFunction) else None
        if code is None or node._forward_cls.__module__.startswith("torch."):
            return None
        first, lines = self._sources.lines_of(code)
        name = self._sources.display_name(code.co_filename)
        return Listing(name, first, tuple(lines[:MOST_LINES])) if lines else None

    def _rule(self, op: str, node: Any) -> DerivativeRule:
        if isinstance(node, BackwardCFunction):
            return DerivativeRule(
                op, why="an autograd.Function: its own backward computes the gradients"
            )
        entry = self._table.entries.get(op)
        if entry is not None:
            return entry.rule
        if op in BY_HAND:
            return DerivativeRule(op, why=f"written by hand in torch's C++: {BY_HAND[op]}")
        if self._table.missing:
            return DerivativeRule(op, why=self._table.missing)
        return DerivativeRule(
            op, why="not in torch's derivatives.yaml, so its formula is not known here"
        )


def constants(node: Any) -> tuple[tuple[str, Number], ...]:
    """The plain numbers among what a node saved: an exponent, a dimension, a slope; a switch is 1
    or 0."""
    found: list[tuple[str, Number]] = []
    for slot in slots_of(node.__class__):
        # Tensors have a second, raw attribute; reading theirs may run code of the program.
        if hasattr(type(node), slot.replace("_saved_", "_raw_saved_", 1)):
            continue
        try:
            value = getattr(node, slot)
        except RuntimeError:
            continue  # freed: said where the node is called
        if type(value) in (bool, int, float):
            # Torch keeps a dimension such as -1 as the unsigned number it wraps around to.
            signed = value - 2**64 if value >= 2**63 else value
            found.append((slot.removeprefix("_saved_"), number(float(signed))))
    return tuple(found)


MAX_MATRIX = 64
"""Numbers of a Jacobian that is not diagonal; a larger one helps nobody."""


def local_derivatives(puller: Puller, number: int) -> tuple[Local, ...]:
    """The Jacobian of each small output of a node by each small operand.

    Raises:
        CannotCall: when the node cannot be called.
    """
    outputs = len(outputs_of(puller.walked.nodes[number]))
    return tuple(one for output in range(outputs) for one in _of_output(puller, number, output))


def _of_output(puller: Puller, number: int, output: int) -> Iterator[Local]:
    like = puller.shape(number, output)
    if not _is_small(like) or not any(_is_small(puller.target(e)) for e in puller.leaving[number]):
        return
    size = math.prod(like.shape)
    rows: dict[int, list[torch.Tensor]] = {}
    for element in range(size):
        one = torch.zeros(size, dtype=like.dtype, device=like.device)
        one[element] = 1
        sent = puller.call(number, {output: one.reshape(tuple(like.shape))})
        for edge, gradient in sent.items():
            rows.setdefault(edge, []).append(gradient)
    for edge, found in rows.items():
        if len(found) == size and _is_small(puller.target(edge)):
            local = _jacobian(edge, output, found, tuple(like.shape))
            if local is not None:
                yield local


def _is_small(like: Any) -> bool:
    return (
        like is not None
        and not is_nested(like)
        and 0 < math.prod(like.shape) <= SMALL
        and like.dtype.is_floating_point
    )


def _jacobian(
    edge: int, output: int, rows: list[torch.Tensor], shape: tuple[int, ...]
) -> Local | None:
    matrix = torch.stack([row.reshape(-1) for row in rows])
    single = matrix.dtype is torch.float32
    sizes = (matrix.shape[0], matrix.shape[1])
    if tuple(rows[0].shape) == shape and _is_diagonal(matrix):
        values = plain(flat_values(matrix.diagonal()), single)
        return Local(edge, output, sizes, values, diagonal=True)
    if matrix.numel() > MAX_MATRIX:
        return None
    return Local(edge, output, sizes, plain(flat_values(matrix), single))


def _is_diagonal(matrix: torch.Tensor) -> bool:
    """Whether a square matrix holds nothing beside its diagonal."""
    beside = matrix.masked_fill(torch.eye(len(matrix), dtype=torch.bool, device=matrix.device), 0)
    # The zeros of the upstream times an infinite derivative are NaN, and mean nothing.
    infinite = ~matrix.diagonal().isfinite()
    return not bool(beside.masked_fill(beside.isnan() & infinite, 0).any())


def amount(tensor: torch.Tensor, keep: int = SMALL) -> Amount:
    """Norm and, for at most ``keep`` elements, values of a tensor of any shape; those of a complex
    one are pairs."""
    info = measure(tensor, keep)
    return Amount("NaN" if info.norm is None else info.norm, info.values)


def zero(like: torch.Tensor, keep: int = SMALL) -> Amount:
    """The amount of a gradient that never arrived."""
    numbers = like.numel() * (2 if like.is_complex() else 1)
    return Amount(0.0, (0.0,) * numbers if like.numel() <= keep else None)
