"""What one step is about in words: its operation, its operands by name and by number, and the
derivative by one of them in ordinary notation.

Must not know of gradients that flowed, or of lines."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from functools import cached_property

from gradscope.escaping import visible
from gradscope.model.explanation import ChainStep, Local
from gradscope.model.report import Node
from gradscope.notation import derivatives as notation
from gradscope.notation import operands
from gradscope.notation.textbook import INFIX
from gradscope.render.answers.explained import Explained
from gradscope.render.words import numbers
from gradscope.words import one_line

LONG = 24
"""An operation or operand whose text is longer is written with letters, as is one whose operands
share a variable."""

LETTERS = "uvwxyzpqrstabcdefgh"

_CALLED = {"self": "input", "mat1": "input"}
"""Operands that the program has no name for, by better ones than torch's."""

_SENTENCE = re.compile(" where | between ")
"""What derivatives that are told in words have in them, and those in signs have not."""

_OF_TORCH_ALONE = re.compile(r"_backward|sym_|handle_|maybe_|scalar_type|layout|::|[?<{]")
"""What stands in formulas that only who knows torch's C++ can read."""


class Wording:
    """The words for one step."""

    def __init__(self, explained: Explained, step: ChainStep) -> None:
        self.explained = explained
        self.step = step
        self.node = explained.graph.nodes[step.node]
        self.rule = explained.answer.rules[step.rule]
        self.op = self.node.short_op
        by_slot = {explained.edge(edge).slot: edge for edge in explained.leaving[step.node]}
        slots = enumerate(step.arguments)
        self.edges = {name: by_slot[slot] for slot, name in slots if name and slot in by_slot}

    # ------------------------------------------------------------------ operands

    def argument(self, edge: int) -> str:
        """The function's argument that an edge leads to, "" where that is not known."""
        return next((name for name, one in self.edges.items() if one == edge), "")

    @cached_property
    def texts(self) -> dict[str, str]:
        """What each argument of the function is called."""
        found = {name: _CALLED.get(name, name) for name in self.step.arguments if name}
        found |= {name: numbers.element(value) for name, value in self.step.constants}
        found |= {name: visible(text) for name, text in self.step.names}
        return found | {name: self._target(edge) for name, edge in self.edges.items()}

    def _target(self, edge: int) -> str:
        """An operand by the node that made it: a leaf's name, a variable, an expression, ``#3``."""
        place, graph = self.explained.edge(edge), self.explained.graph
        target = graph.nodes[place.target]
        origin = graph.origin_of(target)
        if target.kind != "leaf" and target.variable:
            name = operands.part_of_target(target.variable, place.output, len(target.outputs))
            return visible(name)
        # An inner node of one expression has no words of its own.
        is_part = origin is None or target.origin == self.node.origin
        # Nor is what a statement says, or a write through a view, the name of what came of it.
        is_written = target.short_op == "CopySlices" or (
            origin is not None and not operands.is_expression(origin.expression)
        )
        if target.kind == "leaf" or origin is None or is_part or is_written:
            return self._transposed(target) or self.explained.name(target.id)
        return "∂ " * target.backward_made + visible(one_line(origin.expression))

    def _transposed(self, target: Node) -> str:
        """``weightᵀ``: a layer turns its weight around before the product."""
        below = [self.explained.edge(edge).target for edge in self.explained.leaving[target.id]]
        is_leaf = target.op == "TBackward0" and below[0] in self.explained.leaf_at
        return f"{self.explained.name(below[0])}ᵀ" if is_leaf else ""

    @cached_property
    def numbers(self) -> dict[str, str]:
        """The same in numbers, as far as these are known and few."""
        found = {name: text for name, text in self.texts.items() if operands.is_number(text)}
        places = {name: self.explained.edge(edge) for name, edge in self.edges.items()}
        found |= {name: self.explained.value(at.target, at.output) for name, at in places.items()}
        return {name: text for name, text in found.items() if text}

    @cached_property
    def letters(self) -> dict[str, str]:
        """Letters for the operands, where their own texts are long or share a variable."""
        names = notation.operands_of(self.op, self.step.arguments, self.texts)
        known = {name: self.texts[name] for name in names if name in self.texts}
        shown = [self._operation(self.texts)] if self.op in INFIX else [*known.values()]
        if not operands.share_a_name([*known.values()]) and max(map(len, shown), default=0) <= LONG:
            return {}
        own = {name: text for name, text in known.items() if text != _CALLED.get(name, name)}
        long = [name for name, text in own.items() if not operands.is_number(text)]
        taken = self.explained.names_of_program | operands.names_in(self.texts.values())
        taken.add(self.explained.weight)
        free = (letter for letter in LETTERS if letter not in taken)
        return dict(zip(long, free, strict=False))

    def named(self, edge: int) -> str:
        """The operand that an edge leads to: ``a``, or ``u = 2*b`` where it is given a letter."""
        argument = self.argument(edge)
        text, letter = self.texts.get(argument, ""), self.letters.get(argument)
        is_used = letter and any(_has(self._derivative(one), letter) for one in self.edges)
        return f"{letter} = {text}" if is_used else text

    # ------------------------------------------------------------------ what is computed

    def taken(self) -> str:
        """The operation with numbers for its operands, or "" where one is not known."""
        names = notation.operands_of(self.op, self.step.arguments, self.texts)
        others = {*operands.parameters(self.rule.function)} - {*names, "dtype", "alpha"}
        if not names or others:
            return ""
        known = self.numbers.keys() >= {*names} and self.texts.get("alpha", "1") == "1"
        return self._operation(self.numbers) if known else ""

    def _operation(self, texts: Mapping[str, str]) -> str:
        function = self.rule.function.partition("(")[0].partition(".")[0].strip("_")
        return notation.operation(self.op, function, self.step.arguments, texts)

    def derivative(self, edge: int) -> str:
        """``∂(c × d)/∂c = d = 4``, as far as it is known."""
        argument = self.argument(edge)
        text = self._derivative(argument)
        # Those that carry a gradient are said where it is sent to them.
        constants = (name for name in self.letters if name not in self.edges)
        said = [f"{self.letters[n]} = {self.texts[n]}" for n in constants]
        return ", ".join([text, *(one for one in said if _has(text, one[0]))])

    def formula(self, edge: int) -> str:
        """Torch's own formula, where there is no notation for it; with everything always."""
        argument, everything = self.argument(edge), self.explained.everything
        if self._derivative(argument) and not everything:
            return ""
        found = (one.text for one in self.rule.formulas if argument in one.arguments)
        return "; ".join(f"torch: {visible(one)}" for one in found if everything or _teaches(one))

    def _derivative(self, argument: str) -> str:
        texts = {**self.texts, **self.letters}
        if self._is_complex:
            info = self.explained.on_edge(self.edges[argument]) if argument else None
            is_real = info is not None and "complex" not in info.dtype
            return notation.sent_complex(self.op, argument, texts, is_real)
        is_rounded = "rounding_mode" in operands.parameters(self.rule.function)
        symbol = "" if is_rounded else notation.derivative(self.op, argument, texts)
        if not symbol:
            return notation.sent(self.op, argument, texts)
        whole = operands.bracketed(self._operation(texts))
        left = f"∂{whole}/∂{operands.bracketed(texts[argument])}"
        summed = f"; summed where {texts[argument]} was repeated" * self._is_repeated(argument)
        return "".join([f"{left} = {symbol}", *self._numbers(argument, symbol), summed])

    def _is_repeated(self, argument: str) -> bool:
        """Whether an operand has fewer elements than the result."""
        place = self.explained.edge(self.edges[argument])
        own = self.explained.shape(place.target, place.output)
        whole = self.explained.shape(self.node.id, 0)
        return own is not None and whole is not None and math.prod(own) < math.prod(whole)

    def _numbers(self, argument: str, symbol: str) -> Iterator[str]:
        """The derivative with numbers in place of names, and its value: ``= 1/4``, ``= 0.25``."""
        local = self.local(self.edges[argument])
        replaced = notation.derivative(self.op, argument, self.numbers)
        equals = " ="
        if _SENTENCE.search(symbol):  # about each element; lists of numbers say nothing in it
            replaced, equals = "", "; here"
        value = self.explained.local(local) if local and local.diagonal else ""
        info = self.explained.on_edge(self.edges[argument])
        last = symbol
        for more in (replaced, value):
            if more and more != last:
                narrow = last is not symbol and info is not None and "float16" in info.dtype
                yield f"{equals} {more}" + (f" in {info.dtype}" if narrow and info else "")
                last = more

    @cached_property
    def _is_complex(self) -> bool:
        sent = (self.explained.on_edge(edge) for edge in self.explained.leaving[self.step.node])
        return any(one and "complex" in one.dtype for one in (*self.node.outputs, *sent))

    def local(self, edge: int) -> Local | None:
        """The one Jacobian at an edge; None where there is none, or one for each output."""
        found = [one for one in self.step.locals if one.edge == edge]
        return found[0] if len(found) == 1 else None


def _teaches(formula: str) -> bool:
    return formula != "grad" and not _OF_TORCH_ALONE.search(formula)


def _has(text: str, letter: str) -> bool:
    return bool(re.search(rf"\b{letter}\b", text))
