"""The rule behind each node: torch's formula, the lines of a custom backward, or why neither.

Nothing is invented: a node that is in no table says so. Torch's formulas stand in its
``derivatives.yaml``, which torchgen brings with it. Torchgen's own loader also reads what each
function is made of, and takes seconds; here only the file is read, and nodes are numbered as there.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from torch.autograd.function import BackwardCFunction

from gradscope.analyses.explain.pull import Puller, backward_code
from gradscope.autograd import saved
from gradscope.autograd.nodes import is_nested, op_name, outputs_of, slots_of
from gradscope.autograd.numbers import SMALL, plain, shortest
from gradscope.autograd.summary import flat_values
from gradscope.handlers import let_pass
from gradscope.model.explanation import DerivativeRule, Formula, Listing, Local
from gradscope.model.plain import Number, number
from gradscope.notation.operands import parameters
from gradscope.recording.source import Sources


@cache
def formulas() -> tuple[Mapping[str, DerivativeRule], str]:
    """The formulas of the torch that is installed, by the class of the node; or why there are
    none."""
    try:
        import torchgen
        import yaml

        file = Path(torchgen.__file__).parent / "packaged" / "autograd" / "derivatives.yaml"
        # The loader that is written in C, where there is one: it takes a tenth of the time.
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        return dict(_rules_in(yaml.load(file.read_bytes(), loader))), ""
    except Exception as error:  # whatever the file of another torch may bring
        let_pass(error)
        return {}, f"torch's derivatives.yaml could not be read: {type(error).__name__}: {error}"


def _rules_in(functions: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, DerivativeRule]]:
    """Each rule with the class of its node: of several functions of one name torch numbers them in
    the order of the file, and it tells apart what it does for kinds of tensors of their own."""
    numbers: Counter[str] = Counter()
    for function in functions:
        schema = str(function["name"])
        names = list(parameters(schema))
        title = re.split("[.(]", schema)[0].title().replace("_", "")
        title = f"{title}Backward".replace("ForwardBackward", "Backward")
        for kind, section in function.get("dispatch", {"": function}).items():
            written = [
                Formula(tuple(re.split(r",\s*", of)), str(text))
                for of, text in section.items()
                if {*re.split(r",\s*", of)} <= {*names} and text != "non_differentiable"
            ]
            # In the order in which the function takes them, not in that of the file.
            written.sort(key=lambda one: min(map(names.index, one.arguments)))
            if written:
                node = title + kind.removeprefix("Default")
                op = f"{node}{numbers[node]}"
                numbers[node] += 1
                yield op, DerivativeRule(op, schema, tuple(written))


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
        sources: finds the text of the program's code.
    """

    def __init__(self, sources: Sources) -> None:
        self._table, self._missing = formulas()
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
        rule = self._table.get(op_name(node))
        if rule is None or isinstance(node, BackwardCFunction):
            return ()
        kinds = parameters(rule.function)
        names = [name for name in kinds if any(name in one.arguments for one in rule.formulas)]
        # A list of tensors takes several slots.
        lists = [name for name in names if kinds[name].endswith("[]")]
        room = len(node.next_functions) - (len(names) - len(lists))
        if len(lists) > 1 or (not lists and room != 0) or room < 0:
            return ()
        each = ([f"{one}[{i}]" for i in range(room)] if one in lists else [one] for one in names)
        return tuple(chain.from_iterable(each))

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
        if op in self._table:
            return self._table[op]
        if op in BY_HAND:
            return DerivativeRule(op, why=f"written by hand in torch's C++: {BY_HAND[op]}")
        unknown = "not in torch's derivatives.yaml, so its formula is not known here"
        return DerivativeRule(op, why=self._missing or unknown)


def constants(node: Any) -> tuple[tuple[str, Number], ...]:
    """The numbers among what a node saved: an exponent, a dimension, a slope, a factor; a switch
    is 1 or 0."""
    found: list[tuple[str, Number]] = []
    for slot in slots_of(node.__class__):
        name = slot.removeprefix("_saved_")
        # Tensors have a second, raw attribute; reading theirs may run code of the program.
        if hasattr(type(node), f"_raw_saved_{name}"):
            factor = saved.value(node, name)
            if factor is not None and not factor.dim() and not factor.is_complex():
                single = factor.dtype is torch.float32
                found.append((name, shortest(float(factor.detach()), single)))
            continue
        try:
            value = getattr(node, slot)
        except RuntimeError:
            continue  # freed: said where the node is called
        if type(value) in (bool, int, float):
            # Torch keeps a dimension such as -1 as the unsigned number it wraps around to.
            signed = value - 2**64 if value >= 2**63 else value
            found.append((name, number(float(signed))))
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
