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
from gradscope.model.plain import SILENT
from gradscope.model.report import GradientInfo, Node
from gradscope.notation import derivatives as notation
from gradscope.notation import operands
from gradscope.notation.textbook import INFIX
from gradscope.render.answers.explained import (
    LABEL,
    MOST_NUMBERS,
    Explained,
    WrittenGradient,
    agree,
    total,
)
from gradscope.render.drawing.scale import BAD_INK
from gradscope.render.words import numbers
from gradscope.render.words.table import Cell, Column, Part, parts
from gradscope.render.words.text import cells
from gradscope.simplify.gradients import combine
from gradscope.simplify.partition import label_of
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
        slots = {edge: explained.edge(edge).slot for edge in explained.leaving[step.node]}
        named = {slot: name for slot, name in enumerate(step.arguments) if name}
        self.arguments = {edge: named[slot] for edge, slot in slots.items() if slot in named}

    def of(self, edge: int) -> tuple[str, str, str]:
        """An operand, ``a``, or ``u = 2*b`` where it is given a letter; the derivative by it, ``∂(c
        × d)/∂c = d = 4``; torch's own formula, where there is no notation, with everything always.

        Each is "" where it is not known."""
        if edge not in self.arguments:
            return "", "", ""
        argument, derivative = self.arguments[edge], self.derivatives[edge]
        told = " ".join(self.derivatives.values())
        meant = {name: f"{letter} = {self.texts[name]}" for name, letter in self.letters.items()}
        meant = {name: text for name, text in meant.items() if _has(told, text[0])}
        # Those that carry a gradient are said where it is sent to them.
        others = (text for name, text in meant.items() if name not in self.arguments.values())
        said = [text for text in others if _has(derivative, text[0])]
        everything = self.explained.everything
        known = (one.text for one in self.rule.formulas if argument in one.arguments)
        shown = [one for one in known if everything or (not derivative and _teaches(one))]
        formula = "; ".join(f"torch: {visible(one)}" for one in shown)
        named = meant.get(argument, self.texts[argument])
        return named, ", ".join([derivative, *said]), formula

    # ------------------------------------------------------------------ operands

    @cached_property
    def texts(self) -> dict[str, str]:
        """What each argument of the function is called."""
        found = {name: _CALLED.get(name, name) for name in self.step.arguments if name}
        found |= {name: numbers.element(value) for name, value in self.step.constants}
        found |= {name: visible(text) for name, text in self.step.names}
        return found | {name: self._target(edge) for edge, name in self.arguments.items()}

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
        for edge, name in self.arguments.items():
            found[name] = self.explained.value(self.explained.behind(edge))
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

    @cached_property
    def derivatives(self) -> dict[int, str]:
        """The derivative by the operand at each edge, as far as it is known."""
        return {edge: self._derivative(edge, name) for edge, name in self.arguments.items()}

    def _derivative(self, edge: int, argument: str) -> str:
        texts = {**self.texts, **self.letters}
        if self._is_complex:
            is_real = bool(dtype := self._dtype(edge)) and "complex" not in dtype
            return notation.sent_complex(self.op, argument, texts, is_real)
        is_rounded = "rounding_mode" in operands.parameters(self.rule.function)
        symbol = "" if is_rounded else notation.derivative(self.op, argument, texts)
        if not symbol:
            return notation.sent(self.op, argument, texts)
        whole = operands.bracketed(self._operation(texts))
        left = f"∂{whole}/∂{operands.bracketed(texts[argument])}"
        own, result = self.explained.behind(edge), self.node.output(0)
        is_repeated = own and result and math.prod(own.shape) < math.prod(result.shape)
        summed = f"; summed where {texts[argument]} was repeated" if is_repeated else ""
        return "".join([f"{left} = {symbol}", *self._numbers(edge, argument, symbol), summed])

    def _numbers(self, edge: int, argument: str, symbol: str) -> Iterator[str]:
        """The derivative with numbers in place of names, and its value: ``= 1/4``, ``= 0.25``."""
        local, dtype = self.local(edge), self._dtype(edge)
        replaced = notation.derivative(self.op, argument, self.numbers)
        equals = " ="
        if _SENTENCE.search(symbol):  # about each element; lists of numbers say nothing in it
            replaced, equals = "", "; here"
        value = self.explained.local(local) if local and local.diagonal else ""
        last = symbol
        for more in (replaced, value):
            if more and more != last:
                narrow = last is not symbol and "float16" in dtype
                yield f"{equals} {more}" + f" in {dtype}" * narrow
                last = more

    def _dtype(self, edge: int) -> str:
        """That of the gradient along an edge; "" where no pass was made."""
        sent = self.explained.on_edge(edge)
        return sent.info.dtype if sent else ""

    @cached_property
    def _is_complex(self) -> bool:
        dtypes = [*map(self._dtype, self.explained.leaving[self.step.node])]
        dtypes += [one.dtype for one in self.node.outputs if one]
        return any("complex" in dtype for dtype in dtypes)

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
    """One step: what was computed, the gradient that arrived, and what each operand is sent.

    ``received`` are the upstream gradients that arrived, by output, ``upstream`` all as text.
    """

    def __init__(self, explained: Explained, record: ChainStep) -> None:
        self.explained = explained
        self.record = record
        self.node = explained.graph.nodes[record.node]
        self.wording = Wording(explained, record)
        self.edges = [edge for edge in explained.leaving[record.node] if edge in explained.leading]
        roots = {root.node for root in explained.graph.roots}
        sign = explained.glyphs.root if record.node in roots else explained.glyphs.op
        is_opaque = " · opaque" * (self.node.kind == "opaque")
        self.title = f"{sign} #{record.node} {explained.scene.called(self.node)}{is_opaque}"
        self.expression = visible(one_line(label_of(explained.graph, self.node)))
        self.place = explained.scene.place(self.node.line)
        self.received: dict[int, WrittenGradient] = {}
        if explained.backward is not None:
            for output, tensor in enumerate(self.node.outputs):
                info = explained.backward.at(record.node, output)
                if info.state not in SILENT:
                    self.received[output] = explained.gradient(info, tensor)
        self.upstream = ", ".join(one.text for one in self.received.values())

    def arrivals(self, output: int) -> list[tuple[str, str]]:
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
        tensor = self.node.output(output)
        loud = [one for one in found if one[0].state not in SILENT]
        return [(explained.gradient(info, tensor).text, origin) for info, origin in loud]

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
        results = [*map(self.explained.value, self.node.outputs)]
        if not all(results):
            return ""
        taken = self.wording.taken() if len(results) == 1 else ""
        return f"{taken} = {results[0]}" if taken else ", ".join(results)

    def _arrived(self, output: int) -> str:
        arrivals, text = self.arrivals(output), self.received[output].text
        origin = ", ".join(name for _, name in arrivals)
        added = " + ".join(part for part, _ in arrivals)
        backward = self.explained.backward
        hook = backward.hook_on(self.node.id) if backward is not None else None
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
        named, derivative, formula = self.wording.of(edge)
        if label != "→ leaf" and named == self.explained.name(self.explained.edge(edge).target):
            named = ""
        told = (named, derivative, formula, self._product(edge, derivative))
        yield from self.explained.beside(label, *(told if any(told) else ["no gradient goes here"]))

    def _product(self, edge: int, derivative: str) -> str:
        """``upstream × local = sent``, as far as these are known and small; without a gradient the
        local Jacobian, where no number says it."""
        explained, sent = self.explained, self.explained.on_edge(edge)
        if sent is None:
            local = self.wording.local(edge)
            if local is None or local.diagonal or len(local.values) > MOST_NUMBERS:
                return ""
            return f"J = {numbers.tensor(local.values, local.shape, 'float32')}"
        if sent.info.state == "not reached" or not self.received:
            return "nothing arrived, so nothing is sent" * (sent.info.state != "not reached")
        along = [explained.locals.get((edge, output)) for output in self.received]
        given = zip(self.received.values(), along, strict=True)
        products = [explained.product(upstream, [local]) for upstream, local in given]
        text = " + ".join(one.text for one in products)
        added = total([one.row for one in products])
        if not (sent.info.values and added and all(one.text for one in products)):
            return f"{self.upstream} → {sent.text}"
        if agree(added, sent.info.values, explained.precision):
            # Where words say which elements are taken, a matrix of 0 and 1 says no more.
            taken = {float(value) for one in along if one for value in one.values} <= {0, 1}
            is_said = "@" in text and taken and derivative
            return f"{self.upstream} → {sent.text}" if is_said else f"{text} = {sent.text}"
        made = numbers.tensor(added, (len(added),), "float32")
        return f"{text} = {made}, but {sent.text} was sent"

    # ------------------------------------------------------------------ as rows

    def rows(self, told: set[int]) -> Iterator[list[Cell]]:
        """A row for each edge that leads to a node that is told; for all, where none does."""
        explained = self.explained
        above = [one.info for one in self.received.values()]
        arrived = max((len(self.arrivals(output)) for output in self.received), default=0)
        joins = f"{explained.glyphs.sum}{arrived} " if arrived > 1 else ""
        upstream = Part(joins + self._short(self.upstream, above))
        words = [Part(self.title, "bold"), Part(self.expression, "cyan"), upstream]
        place = self.place
        among = [edge for edge in self.edges if explained.edge(edge).target in told]
        leaving = among or self.edges
        for edge in leaving:
            sent, local = explained.on_edge(edge), self.wording.local(edge)
            is_factor = local is not None and (local.diagonal or local.shape[0] == 1)
            text = explained.local(local) if local is not None and is_factor else ""
            factor = self._short(f"× {text}" if text else "", [])
            yield [
                *words,
                factor,
                explained.to(edge) if len(leaving) > 1 else "",
                self._short(sent.text, [sent.info]) if sent else "",
                "" if factor else ratio(above, sent.info if sent else None),
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


def as_table(explained: Explained) -> Iterator[str]:
    """A row for each operand of each step."""
    steps = explained.answer.steps
    told = {step.node for step in steps} | {end.node for end in explained.answer.ends}
    rows = [row for step in steps for row in StepWriter(explained, step).rows(told)]
    yield from explained.table(COLUMNS, rows)
    if any(parts(row[2])[0].text.startswith(explained.glyphs.sum) for row in rows):
        text = "Σ2: two gradients arrive, also those of other paths, and are added up"
        yield explained.fitted(text, "dim")
