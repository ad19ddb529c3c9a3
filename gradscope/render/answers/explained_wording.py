"""What one step is about in the program's own words: its operation, its operands by name and by
number, and the derivative by one of them in ordinary notation.

Must not know of gradients that flowed, or of lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from gradscope.escaping import visible
from gradscope.model.explanation import ChainStep, Local
from gradscope.model.report import Node
from gradscope.notation import derivatives as notation
from gradscope.notation import operands
from gradscope.notation.operands import Operation, part_of_target, share_a_name
from gradscope.render.answers.explained import Explained
from gradscope.render.words import numbers
from gradscope.words import one_line

LONG = 24
"""An operation whose text is longer is written with letters in place of its operands, as is one
whose operands share a variable."""

LETTERS = "uvwxyz"

_CALLED = {"mat1": "input"}
"""Operands of a layer by better names than torch's."""


@dataclass
class Wording:
    """The words for one step."""

    explained: Explained
    step: ChainStep

    def __post_init__(self) -> None:
        self.graph = self.explained.graph
        self.node = self.graph.nodes[self.step.node]
        self.rule = self.explained.answer.rules[self.step.rule]
        self.op = self.node.short_op
        self.function = self.rule.function.partition("(")[0].partition(".")[0]

    @cached_property
    def operation(self) -> Operation | None:
        """What the program wrote for this node, if its expression says just that."""
        origin = self.graph.origin_of(self.node)
        if origin is None or self.node.backward_made or not self.function:
            return None
        expression = visible(one_line(origin.expression))
        operations = operands.read(expression, self.op, self.function)
        if len(operations) < 2:
            return next(iter(operations), None)
        # Which of them is meant shows in what the edges lead to.
        return next((one for one in operations if not self._is_contradicted(one)), None)

    def _is_contradicted(self, operation: Operation) -> bool:
        """Whether it gives an operand that carries a gradient another text than it has."""
        parameters = operands.parameters(self.rule.function)
        given = dict(zip(operation.order(parameters), operation.operands, strict=False))
        if len(operation.operands) > len(parameters):
            return True
        for argument in self.step.arguments:
            if self._edge_of(argument) is None:
                continue
            text, known = given.get(argument), self._target_text(argument)
            if text is None:
                if not any(one.startswith(f"{argument}=") for one in operation.keywords):
                    return True
            elif operands.is_number(text) or (text != known and known in operation.operands):
                return True
        return False

    @cached_property
    def _written(self) -> list[str]:
        """The function's arguments in the order in which the operation writes them."""
        if self.operation is None:
            return []
        names = self.operation.order(operands.parameters(self.rule.function))
        return names[::-1] if self._is_reflected(names) else names

    def _is_reflected(self, names: list[str]) -> bool:
        """Whether python handed the right operand's method the left one, as in ``3*a``."""
        texts = self.operation.operands if self.operation else ()
        if len(names) != 2 or len(texts) != 2 or self.op not in ("Mul", "Add", "Rsub"):
            return False
        first = self._target_text(names[0])
        return operands.is_number(texts[0]) or (first == texts[1] and first != texts[0])

    @cached_property
    def texts(self) -> dict[str, str]:
        """What each argument of the function is called."""
        found = {name: numbers.element(value) for name, value in self.step.constants}
        found |= {name: visible(text) for name, text in self.step.names}
        for argument in self.step.arguments:
            known = self._target_text(argument)
            if known:
                found[argument] = known
        if self.operation is not None:
            found.update(zip(self._written, self.operation.operands, strict=False))
        if not notation.is_elementwise(self.op) and len(self._operands) > 1:
            # One that the program gives no words has its node's number, or its name in torch.
            edges = {name: self._edge_of(name) for name in self._operands}
            found = {
                name: f"#{self.explained.edge(edge).target}"
                if edge is not None
                else _CALLED.get(name, name)
                for name, edge in edges.items()
            } | found
        return found

    @property
    def _operands(self) -> list[str]:
        return [name for name in self.step.arguments if name]

    def _edge_of(self, argument: str) -> int | None:
        if argument not in self.step.arguments:
            return None
        slot = self.step.arguments.index(argument)
        leaving = self.explained.leaving[self.step.node]
        return next((edge for edge in leaving if self.explained.edge(edge).slot == slot), None)

    def _target_text(self, argument: str) -> str:
        """The operand by the node that made it: a leaf's name, a variable, an expression."""
        edge = self._edge_of(argument)
        if edge is None:
            return ""
        target = self.graph.nodes[self.explained.edge(edge).target]
        if target.kind == "leaf":
            return self.explained.name(target.id)
        origin = self.graph.origin_of(target)
        if target.variable or origin is None:
            output = self.explained.edge(edge).output
            return visible(part_of_target(target.variable, output, len(target.outputs)))
        # An inner node of one expression has no words of its own.
        if target.origin == self.node.origin:
            return self._transposed(target)
        made = "∂ " if target.backward_made else ""
        return made + visible(one_line(origin.expression))

    def _transposed(self, target: Node) -> str:
        """``weightᵀ``: a layer turns its weight around before the product."""
        below = [self.explained.edge(edge).target for edge in self.explained.leaving[target.id]]
        is_leaf = target.op == "TBackward0" and below[0] in self.explained.leaf_at
        return f"{self.explained.name(below[0])}ᵀ" if is_leaf else ""

    def _number(self, argument: str) -> str:
        """The value of an argument, where it is known and small."""
        edge = self._edge_of(argument)
        if edge is not None:
            place = self.explained.edge(edge)
            return self.explained.tensor(self.explained.scene.tensor(place.target, place.output))
        text = self.texts.get(argument, "")
        return text if operands.is_number(text) else ""

    def argument(self, slot: int) -> str:
        """The function's argument behind an input slot, "" where that is not known."""
        arguments = self.step.arguments
        return arguments[slot] if slot < len(arguments) else ""

    def named(self, slot: int) -> str:
        """The operand in an input slot: ``a``, or ``u = 2*b`` where it is given a letter."""
        text = self.texts.get(self.argument(slot), "")
        letter = self.letter(slot)
        return f"{letter} = {text}" if letter else text

    def letter(self, slot: int) -> str:
        """The letter that the operand in an input slot is given, "" where it has none."""
        argument = self.argument(slot)
        letter = self.letters.get(argument, "")
        return letter if self.texts.get(argument) and letter in self._used_letters else ""

    @cached_property
    def _used_letters(self) -> set[str]:
        """The letters that stand in what is said of any operand of the step."""
        leaving = self.explained.leaving[self.step.node]
        return set(re.findall(r"\w+", " ".join(map(self._derivative, leaving))))

    @cached_property
    def letters(self) -> dict[str, str]:
        """Letters for the operands, where the operation would be too long to repeat."""
        operation = self.operation
        written = operation.text if operation and not operation.is_call else ""
        names = self._written or self._operands
        texts = [self.texts.get(name, "") for name in names]
        longest = max(map(len, (written, *texts)), default=0)
        if all(texts) and longest <= LONG and not share_a_name(texts):
            return {}
        known = {name: self.texts.get(name, "") for name in names}
        long = [name for name, text in known.items() if not operands.is_number(text)]
        used = set(re.findall(r"\w+", " ".join((written, *texts))))
        free = (letter for letter in LETTERS if letter not in used)
        return dict(zip(long, free, strict=False))

    def derivative(self, edge: int) -> str:
        """``∂(c * d)/∂c = d = 4``, as far as it is known."""
        text = self._derivative(edge)
        constants = [
            f"{letter} = {self.texts[argument]}"
            for argument, letter in self.letters.items()
            # The others are said where the gradient is sent to them.
            if self._edge_of(argument) is None and self.texts.get(argument)
            if re.search(rf"\b{letter}\b", text)
        ]
        return ", ".join([text, *constants])

    def _derivative(self, edge: int) -> str:
        argument = self.argument(self.explained.edge(edge).slot)
        texts = {**self.texts, **self.letters}
        if self._is_complex:
            info = self.explained.on_edge(edge)
            is_real = info is not None and "complex" not in info.dtype
            return notation.sent_complex(self.op, argument, texts, is_real)
        is_rounded = "rounding_mode" in operands.parameters(self.rule.function)
        symbol = "" if is_rounded else notation.derivative(self.op, argument, texts)
        if not symbol:
            formulas = (one.text for one in self.rule.formulas if argument in one.arguments)
            sent = notation.sent(self.op, argument, texts, next(formulas, ""))
            return sent or self._plain_local(edge)
        if not texts.get(argument):
            return self._plain_local(edge)
        return " ".join([f"{self._left(argument, texts)} = {symbol}", *self._numbers(edge, symbol)])

    def _numbers(self, edge: int, symbol: str) -> Iterator[str]:
        """The derivative with numbers in place of names, and its value: ``= 1/4``, ``= 0.25``."""
        argument = self.argument(self.explained.edge(edge).slot)
        local = self.local(edge)
        known = {name: self._number(name) for name in self.texts}
        replaced = notation.derivative(self.op, argument, {k: v for k, v in known.items() if v})
        if " where " in symbol:
            replaced = ""  # a sentence about each element; lists of numbers say nothing in it
        value = self.explained.local(local) if local and local.diagonal else ""
        info = self.explained.on_edge(edge)
        last = symbol
        for more in (replaced, value):
            if more and more != last:
                narrow = last is not symbol and info is not None and "float16" in info.dtype
                yield f"= {more} in {info.dtype}" if narrow and info else f"= {more}"
                last = more

    @cached_property
    def _is_complex(self) -> bool:
        return any(one is not None and "complex" in one.dtype for one in self.node.outputs) or any(
            "complex" in info.dtype
            for edge in self.explained.leaving[self.step.node]
            if (info := self.explained.on_edge(edge)) is not None
        )

    def _left(self, argument: str, texts: dict[str, str]) -> str:
        operand = operands.bracketed(texts[argument])
        if self.operation is not None and not self.letters and not self.operation.is_call:
            whole = self.operation.text
        elif self.operation is not None:
            whole = self.operation.write([texts.get(name, "…") for name in self._written])
        else:
            numbers = [name for name in ("other", "exponent") if name in texts]
            names = dict.fromkeys([*self._operands, *numbers])
            taken = [texts.get(name) or "…" for name in names]
            whole = f"{self.function}({', '.join(taken)})"
        return f"∂{operands.bracketed(whole)}/∂{operand}"

    def _plain_local(self, edge: int) -> str:
        local = self.local(edge)
        text = self.explained.local(local) if local is not None and local.diagonal else ""
        return f"local derivative {text}" if text else ""

    def is_choice(self, edge: int) -> bool:
        """Whether words say which elements of the upstream gradient an operand gets."""
        local, text = self.local(edge), self._derivative(edge)
        chosen = local is not None and {float(value) for value in local.values} <= {0.0, 1.0}
        return chosen and bool(text) and "∂" not in text

    def local(self, edge: int) -> Local | None:
        """The one Jacobian at an edge; None where there is none, or one for each output."""
        found = [one for one in self.step.locals if one.edge == edge]
        return found[0] if len(found) == 1 else None

    def taken(self) -> str:
        """The operation with numbers for its operands, or "" where one is not known."""
        if self.operation is None:
            return ""
        texts = [self._number(argument) for argument in self._written]
        return self.operation.write(texts) if all(texts) else ""
