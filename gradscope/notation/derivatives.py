"""Derivatives as a textbook writes them, for the operations that programs are mostly made of: the
tables of :mod:`gradscope.notation.textbook`, with the operands filled in.

Must not know of nodes or gradients.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from gradscope.notation.operands import bracketed, is_number
from gradscope.notation.textbook import ELEMENTWISE, HOLOMORPHIC, INFIX, LINEAR


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
    if op == "Pow" and argument == "self" and is_number(operands.get("exponent", "")):
        return _power(operands)
    return _filled(ELEMENTWISE.get(op, {}).get(argument, ""), operands)


def sent(op: str, argument: str, operands: Mapping[str, str]) -> str:
    """In words what an operation sends to an argument, or ""."""
    name = argument.partition("[")[0]
    text = _filled(LINEAR.get(op, {}).get(name, ""), operands)
    if op == "Embedding":
        return text + _left_out(operands)
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
    tables = ((ELEMENTWISE.get(op, {}), True), (LINEAR.get(op, {}), False))
    return [
        (argument, is_derivative, re.sub(r"\{(\w+?)_?\}", r"\1", template))
        for table, is_derivative in tables
        for argument, template in table.items()
    ]


def _filled(template: str, operands: Mapping[str, str]) -> str:
    texts = {name: bracketed(text) for name, text in operands.items()}
    texts |= {f"{name}_": text for name, text in operands.items()}
    try:
        text = template.format_map(texts).replace("ᵀᵀ", "")
        return re.sub(r"(?<![\w.^/])1 × ", "", text)
    except KeyError:
        return ""  # an operand whose text is not known


def _power(operands: Mapping[str, str]) -> str:
    number = float(operands["exponent"])
    if number in (0, 1):
        return f"{number:g}"
    power = "" if number == 2 else f"^{number - 1:g}"
    return _filled(f"{number:g} × {{self}}{power}", operands)


def _left_out(operands: Mapping[str, str]) -> str:
    """Of a table whose rows are looked up the one for padding, and whether it counts them."""
    text = ""
    if operands.get("padding_idx", "-1") != "-1":
        text += f"; row {operands['padding_idx']} is padding and gets 0"
    if operands.get("scale_grad_by_freq", "0") != "0":
        text += "; each row divided by how often it was looked up"
    return text
