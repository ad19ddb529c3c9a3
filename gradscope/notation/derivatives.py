"""Derivatives as a textbook writes them, for the operations that programs are mostly made of: the
tables of :mod:`gradscope.notation.textbook`, with the operands filled in.

Must not know of nodes or gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from gradscope.notation.operands import bracketed, is_number
from gradscope.notation.textbook import (
    BY_FORMULA,
    CHOOSING,
    DEPENDENT,
    ELEMENTWISE,
    HOLOMORPHIC,
    INFIX,
    LINEAR,
)


def operands_of(op: str, arguments: Iterable[str], operands: Mapping[str, str]) -> list[str]:
    """The arguments of an operation that stand in it, in the order in which they are written: a
    number before what it multiplies."""
    if op not in INFIX:
        return [name for name in arguments if name]
    left, _, right = INFIX[op]
    is_reversed = op == "Mul" and is_number(operands.get(right, ""))
    return [right, left] if is_reversed else [left, right]


def operation(op: str, function: str, arguments: Iterable[str], operands: Mapping[str, str]) -> str:
    """The operation in these operands, ``3 × a`` or ``log(c)``; one whose text is not known is
    called by its argument."""
    names = operands_of(op, arguments, operands)
    texts = [operands.get(name) or name for name in names]
    if op not in INFIX:
        return f"{function}({', '.join(texts)})"
    sign = INFIX[op][1]
    # A sum needs no brackets around its terms; everything else is safer with them.
    free = {" + ": 2, " - ": 1}.get(sign, 0)
    return sign.join([*texts[:free], *map(bracketed, texts[free:])])


def derivative(op: str, argument: str, operands: Mapping[str, str]) -> str:
    """∂(operation)/∂argument in these operands, or "" where there is no notation for it.

    Args:
        op: the node's short name.
        argument: of the forward function.
        operands: texts of the arguments, names or numbers.
    """
    if op in ("Add", "Sub", "Rsub") and operands.get("alpha", "1") != "1":
        return ""  # a + 2 × b in one operation is rare, and torch's formula says it
    if op == "Pow" and argument == "self":
        return _power(operands)
    if op == "Pow" and argument == "exponent":
        return _filled("{self}^{exponent} × ln({self_})", operands)
    if op in _SCALED:
        return _filled(_SCALED[op](operands), operands)
    return _filled(ELEMENTWISE.get(op, {}).get(argument, ""), operands)


def is_elementwise(op: str) -> bool:
    """Whether the derivative of an operation is one factor for each element."""
    return op in ELEMENTWISE or op == "Pow" or op in _SCALED


def sent(op: str, argument: str, operands: Mapping[str, str], formula: str = "") -> str:
    """In words what an operation sends to an argument, or "".

    ``formula`` is torch's own, where it is known: some operations share a name and differ in it.
    """
    name = argument.partition("[")[0]
    if op in DEPENDENT:
        number, texts = DEPENDENT[op]
        return _filled(texts.get(name, {}).get(operands.get(number, ""), ""), operands)
    if op == "Embedding":
        return _embedding(operands)
    text = BY_FORMULA.get(formula.partition("(")[0], "") if op in CHOOSING else ""
    text = _filled(text or LINEAR.get(op, {}).get(name, ""), operands)
    factor = operands.get("beta" if name == "self" else "alpha", "1")
    if op in ("Addmm", "Baddbmm", "Addmv") and factor != "1" and text:
        return f"{factor} × ({text})"
    return text


def sent_complex(op: str, argument: str, operands: Mapping[str, str], is_real: bool) -> str:
    """The same where complex numbers take part; ``is_real``: the operand itself is real."""
    symbol = derivative(op, argument, operands) if op in HOLOMORPHIC else ""
    if not symbol:
        return {"Conj": "the conjugate of the upstream"}.get(op, "")
    factor = "" if symbol in ("1", "-1") else f" × conj({symbol})"
    text = f"{'-' * (symbol == '-1')}upstream{factor}"
    return f"the real part of {text}" if is_real else text


def general(op: str) -> list[tuple[str, bool, str]]:
    """What an operation does to the gradient, in the names of its own arguments.

    Returns:
        For every argument its name, whether the text is a derivative (or else what is sent), and
        the text; nothing for an operation without notation.
    """
    names = _Names()
    if op == "Pow":
        power = _power({"self": "self", "exponent": "exponent"})
        return [("self", True, power), ("exponent", True, "self^exponent × ln(self)")]
    tables = ((ELEMENTWISE.get(op, {}), True), (LINEAR.get(op, {}), False))
    return [
        (argument, is_derivative, template.format_map(names))
        for table, is_derivative in tables
        for argument, template in table.items()
    ]


class _Names(dict[str, str]):
    """Every argument's text is its name."""

    def __missing__(self, name: str) -> str:
        return name.removesuffix("_")


def _filled(template: str, operands: Mapping[str, str]) -> str:
    texts = {name: bracketed(text) for name, text in operands.items()}
    texts |= {f"{name}_": text for name, text in operands.items()}
    try:
        return template.format_map(texts).replace("ᵀᵀ", "")
    except KeyError:
        return ""  # an operand whose text is not known


def _power(operands: Mapping[str, str]) -> str:
    exponent = operands.get("exponent", "")
    try:
        number = float(exponent)
    except ValueError:
        return _filled("{exponent} × {self}^({exponent_} - 1)", operands)
    if number in (0, 1):
        return f"{number:g}"
    power = "" if number == 2 else f"^{number - 1:g}"
    return _filled(f"{number:g} × {{self}}{power}", operands)


def _elu(operands: Mapping[str, str]) -> str:
    """elu, and selu and celu, which scale its result or what is below zero."""
    scale, inner = operands.get("scale", "1"), operands.get("input_scale", "1")
    below = [text for text in (scale, operands.get("alpha", "1"), inner) if text != "1"]
    inside = "{self_}" if inner == "1" else f"{inner} × {{self}}"
    factors = " × ".join([*below, f"exp({inside})"])
    return f"{scale} where {{self}} > 0, else {factors}"


def _softplus(operands: Mapping[str, str]) -> str:
    inside = "{self_}" if operands.get("beta", "1") == "1" else "{beta} × {self}"
    return f"σ({inside}), and 1 where {inside} > {{threshold}}"


def _embedding(operands: Mapping[str, str]) -> str:
    """The rows of a table, which may have one for padding, and may count how often each is met."""
    text = LINEAR["Embedding"]["weight"]
    if operands.get("padding_idx", "-1") != "-1":
        text += f"; row {operands['padding_idx']} is padding and gets 0"
    if operands.get("scale_grad_by_freq", "0") != "0":
        text += "; each row divided by how often it was looked up"
    return text


_SCALED: dict[str, Callable[[Mapping[str, str]], str]] = {"Elu": _elu, "Softplus": _softplus}
"""Operations whose template depends on numbers that are mostly 1."""
