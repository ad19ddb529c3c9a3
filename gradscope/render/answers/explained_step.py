"""The steps of the chain rule, in words and numbers: each in full, or all as rows of a table; the
operands by name and by number, the derivative by one of them in ordinary notation.

Must not know of paths or weights."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from gradscope.escaping import visible
from gradscope.model.explanation import ChainStep, Local
from gradscope.model.report import GradientInfo, Node
from gradscope.notation import derivatives as notation
from gradscope.notation import operands
from gradscope.notation.textbook import INFIX
from gradscope.render.answers.explained import (
    LABEL,
    MOST_NUMBERS,
    Explained,
    agree,
    total,
)
from gradscope.render.drawing.scale import BAD_INK
from gradscope.render.words import numbers
from gradscope.render.words.table import Cell, Column, Part, parts
from gradscope.render.words.text import cells
from gradscope.simplify.gradients import combine
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


# ---------------------------------------------------------------- the steps


LEFT = 40
"""Cells that three columns of numbers leave to the step and what it computes."""

SILENT = ("none", "not reached")
"""States of a gradient that brings nothing."""

COLUMNS = (
    Column("step", narrowest=16, comfort=24),
    Column("expression", drop=4, narrowest=10, comfort=20, essential=True),
    Column("upstream", right=True),
    Column("× local", right=True, drop=3),
    Column("to"),
    Column("sent on", right=True),
    Column("ratio", right=True, drop=1),
    Column("source", drop=2),
)


class StepWriter:
    """One step: what was computed, the gradient that arrived, and what each operand is sent."""

    def __init__(self, explained: Explained, record: ChainStep) -> None:
        self.explained = explained
        self.record = record
        self.node = explained.graph.nodes[record.node]
        self.wording = Wording(explained, record)
        self.edges = [edge for edge in explained.leaving[record.node] if edge in explained.leading]
        roots = {root.node for root in explained.graph.roots}
        sign = explained.glyphs.root if record.node in roots else explained.glyphs.op
        self.title = f"{sign} #{record.node} {explained.title(self.node)}"
        self.expression = explained.expression(self.node)
        self.place = explained.scene.place(self.node.line)

    @cached_property
    def received(self) -> dict[int, GradientInfo]:
        """The upstream gradients that arrived, by output."""
        outputs = range(len(self.node.outputs))
        found = {output: self.explained.upstream(self.node.id, output) for output in outputs}
        return {k: info for k, info in found.items() if info and info.state not in SILENT}

    @property
    def upstream(self) -> str:
        """The same as text."""
        shapes = {output: self.explained.shape(self.node.id, output) for output in self.received}
        return ", ".join(self.explained.gradient(x, shapes[k]) for k, x in self.received.items())

    def arrivals(self, output: int) -> list[tuple[GradientInfo, str]]:
        """The gradients that were added up for an output, and where each is from."""
        explained, here, backward = self.explained, self.node.id, self.explained.backward
        if backward is None:
            return []
        roots = zip(explained.graph.roots, backward.seeds, strict=True)
        at = [seed for root, seed in roots if (root.node, root.output) == (here, output)]
        found = [(backward.gradients[seed], "given") for seed in at]
        for edge in explained.arriving[here]:
            if explained.edge(edge).output == output:
                found.append((backward.on_edge(edge), f"from #{explained.edge(edge).source}"))
        return [one for one in found if one[0].state not in SILENT]

    def sent(self, edge: int) -> str:
        """The gradient along an edge; "" where there is none."""
        info, place = self.explained.on_edge(edge), self.explained.edge(edge)
        shape = self.explained.shape(place.target, place.output)
        return self.explained.gradient(info, shape) if info else ""

    # ------------------------------------------------------------------ in full

    def lines(self) -> Iterator[str]:
        """All lines of the step."""
        explained = self.explained
        yield explained.headline(f"{self.title}  {self.expression}".rstrip(), self.place)
        yield from explained.entry("value", self._value())
        for output in self.received:
            label = "upstream" if len(self.node.outputs) == 1 else f"upstream{output}"
            yield from explained.entry(label, self._arrived(output))
        for edge in self.edges:
            yield from self._operand(edge)
        if self.record.listing is not None:
            listing = self.record.listing
            yield from explained.entry("backward", f"{visible(listing.file)}:{listing.line}", "dim")
            for text in listing.lines:
                yield explained.fitted(" " * 15 + explained.glyphs.text(visible(text)), "cyan")
        elif self.wording.rule.why:
            yield from explained.entry("formula", visible(self.wording.rule.why), "dim")
        if self.record.why:
            text = f"derivatives cannot be computed here, because {visible(self.record.why)}"
            yield from explained.entry("local", text, BAD_INK)

    def _value(self) -> str:
        outputs = range(len(self.node.outputs))
        results = [self.explained.value(self.node.id, output) for output in outputs]
        if not all(results):
            return ""
        taken = self.wording.taken() if len(results) == 1 else ""
        return f"{taken} = {results[0]}" if taken else ", ".join(results)

    def _arrived(self, output: int) -> str:
        explained = self.explained
        shape = explained.shape(self.node.id, output)
        arrivals = self.arrivals(output)
        text = explained.gradient(self.received[output], shape)
        origin = ", ".join(name for _, name in arrivals)
        added = " + ".join(explained.gradient(part, shape) for part, _ in arrivals)
        hook = explained.backward.hook_on(self.node.id) if explained.backward is not None else None
        if hook is not None:
            place = f" ({hook})" if hook else ""
            return f"{added}  ({origin}), which a hook of the program{place} replaced by {text}"
        if len(arrivals) > 1:
            text = f"{added} = {text}"
        return f"{text}  ({origin})" if origin else text

    def _operand(self, edge: int) -> Iterator[str]:
        """An operand, the derivative by it, and the product."""
        to = self.explained.to(edge)
        label = f"→ {to}" if cells(to) < LABEL - 2 else "→ leaf"
        named = self.wording.named(edge)
        said = (
            named
            if label == "→ leaf" or named != self.explained.name(self.explained.edge(edge).target)
            else ""
        )
        words = self.wording
        told = (said, words.derivative(edge), words.formula(edge), self._product(edge))
        yield from self.explained.beside(label, *(told if any(told) else ["no gradient goes here"]))

    def _product(self, edge: int) -> str:
        """``upstream × local = sent``, as far as these are known and small; without a gradient the
        local Jacobian, where no number says it."""
        explained, info = self.explained, self.explained.on_edge(edge)
        if info is None:
            local = None if explained.backward is not None else self.wording.local(edge)
            if local is None or local.diagonal or len(local.values) > MOST_NUMBERS:
                return ""
            return f"J = {numbers.tensor(local.values, local.shape, 'float32')}"
        if info.state == "not reached" or not self.received:
            return "" if info.state == "not reached" else "nothing arrived, so nothing is sent"
        sent = self.sent(edge)
        products = list(self._products(edge))
        rows = [multiplied(self.received[k].values or (), local) for k, local, _ in products]
        added = total(rows)
        is_known = products and len(products) == len(self.received) and info.values
        if added is None or not is_known or not all(text for *_, text in products):
            return f"{self.upstream} → {sent}"
        text = " + ".join(text for *_, text in products)
        if agree(added, info.values or (), explained.precision):
            # Where words say which elements are taken, a matrix of 0 and 1 says no more.
            taken = {float(value) for _, local, _ in products for value in local.values} <= {0, 1}
            is_said = "@" in text and taken and self.wording.derivative(edge)
            return f"{self.upstream} → {sent}" if is_said else f"{text} = {sent}"
        return f"{text} = {numbers.tensor(added, (len(added),), 'float32')}, but {sent} was sent"

    def _products(self, edge: int) -> Iterator[tuple[int, Local, str]]:
        """For each output that got a gradient its Jacobian, and the product in numbers, "" where
        these are many."""
        explained = self.explained
        for output, info in self.received.items():
            local = explained.locals.get((edge, output))
            # A gradient that was not yet reduced to its tensor's shape has more numbers.
            if local is not None and len(info.values or ()) == local.shape[0]:
                shape = explained.shape(self.node.id, output)
                yield output, local, explained.product(info, shape, [local])

    # ------------------------------------------------------------------ as rows

    def rows(self, told: set[int]) -> Iterator[list[Cell]]:
        """A row for each edge that leads to a node that is told; for all, where none does."""
        explained = self.explained
        above = [*self.received.values()]
        arrived = max((len(self.arrivals(output)) for output in self.received), default=0)
        joins = f"{explained.glyphs.sum}{arrived} " if arrived > 1 else ""
        upstream = Part(joins + self._short(self.upstream, above))
        words, place = (
            [Part(self.title, "bold"), Part(self.expression, "cyan"), upstream],
            self.place,
        )
        among = [edge for edge in self.edges if explained.edge(edge).target in told]
        leaving = among or self.edges
        for edge in leaving:
            info, local = explained.on_edge(edge), self.wording.local(edge)
            is_factor = local is not None and (local.diagonal or local.shape[0] == 1)
            text = explained.local(local) if local is not None and is_factor else ""
            factor = self._short(f"× {text}" if text else "", [])
            yield [
                *words,
                factor,
                explained.to(edge) if len(leaving) > 1 else "",
                self._short(self.sent(edge), [info] if info else []),
                "" if factor else ratio(above, info),
                Part(place, "dim"),
            ]
            words, place = [Part("")] * 3, ""

    def _short(self, text: str, instead: Sequence[GradientInfo]) -> str:
        """A text that leaves room for others like it, else the norm of all together."""
        if cells(text) <= (self.explained.options.width - LEFT) // 3:
            return text
        whole = combine([*instead])
        return f"‖{numbers.number(whole.norm)}‖" if whole and whole.norm is not None else ""


def ratio(above: Sequence[GradientInfo], sent: GradientInfo | None) -> str:
    """By how much a gradient grew, where that can be said."""
    if len(above) != 1 or sent is None or sent.norm is None or not above[0].norm:
        return ""
    grown = float(sent.norm) / float(above[0].norm)
    return f"×{grown:.3g}" if math.isfinite(grown) else ""


def multiplied(upstream: tuple[float | str, ...], local: Local) -> list[float]:
    """Upstream gradient times Jacobian: element by element, or row vector times matrix."""
    above = [float(value) for value in upstream]
    values = [float(value) for value in local.values]
    if local.diagonal:
        return [a * b for a, b in zip(above, values, strict=True)]
    rows, columns = local.shape
    return [
        sum(above[row] * values[row * columns + column] for row in range(rows))
        for column in range(columns)
    ]


def as_table(explained: Explained) -> Iterator[str]:
    """A row for each operand of each step."""
    steps = explained.answer.steps
    told = {step.node for step in steps} | {end.node for end in explained.answer.ends}
    rows = [row for step in steps for row in StepWriter(explained, step).rows(told)]
    yield from explained.table(COLUMNS, rows)
    if any(parts(row[2])[0].text.startswith(explained.glyphs.sum) for row in rows):
        text = "Σ2: two gradients arrive, also those of other paths, and are added up"
        yield explained.fitted(text, "dim")
