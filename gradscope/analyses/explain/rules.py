"""The rule behind each node: torch's formula, the lines of a custom backward, or why neither.

Nothing is invented: a node that is in no table says so.
"""

from __future__ import annotations

from typing import Any

from torch.autograd.function import BackwardCFunction

from gradscope.analyses.explain.formulas import FormulaTable
from gradscope.analyses.explain.pull import backward_code
from gradscope.autograd.nodes import op_name, slots_of
from gradscope.model.explanation import DerivativeRule, Listing
from gradscope.model.plain import Number, number
from gradscope.recording.source import Sources

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
            found.append((slot.removeprefix("_saved_"), number(float(_signed(value)))))
    return tuple(found)


def _signed(value: float) -> float:
    # Torch keeps a dimension such as -1 as the unsigned number it wraps around to.
    return value - 2**64 if value >= 2**63 else value
