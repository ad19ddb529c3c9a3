"""Derivatives as a textbook writes them, for the operations that programs are mostly made of.

A table and nothing else: what is not in it has no notation, only torch's own formula.  The source
is ``derivatives.yaml`` of torch, read as mathematics, for real numbers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from gradscope.operands import bracketed

ELEMENTWISE: dict[str, dict[str, str]] = {
    "Add": {"self": "1", "other": "1"},
    "Sub": {"self": "1", "other": "-1"},
    "Rsub": {"self": "-1", "other": "1"},
    "Mul": {"self": "{other_}", "other": "{self_}"},
    "Div": {"self": "1/{other}", "other": "-{self}/{other}²"},
    "Neg": {"self": "-1"},
    "Clone": {"self": "1"},
    "ToCopy": {"self": "1"},
    "Alias": {"self": "1"},
    "Reciprocal": {"self": "-1/{self}²"},
    "Abs": {"self": "sign({self_})"},
    "Exp": {"self": "exp({self_})"},
    "Exp2": {"self": "ln 2·2^{self}"},
    "Expm1": {"self": "exp({self_})"},
    "Log": {"self": "1/{self}"},
    "Log2": {"self": "1/({self}·ln 2)"},
    "Log10": {"self": "1/({self}·ln 10)"},
    "Log1P": {"self": "1/(1 + {self})"},
    "Sqrt": {"self": "1/(2·√{self})"},
    "Rsqrt": {"self": "-1/(2·{self}·√{self})"},
    "Sin": {"self": "cos({self_})"},
    "Cos": {"self": "-sin({self_})"},
    "Tan": {"self": "1 + tan({self_})²"},
    "Asin": {"self": "1/√(1 - {self}²)"},
    "Acos": {"self": "-1/√(1 - {self}²)"},
    "Atan": {"self": "1/(1 + {self}²)"},
    "Sinh": {"self": "cosh({self_})"},
    "Cosh": {"self": "sinh({self_})"},
    "Tanh": {"self": "1 - tanh({self_})²"},
    "Erf": {"self": "2/√π·exp(-{self}²)"},
    "Sigmoid": {"self": "σ({self_})·(1 - σ({self_}))"},
    "LogSigmoid": {"self": "1 - σ({self_})"},
    "Silu": {"self": "σ({self_})·(1 + {self}·(1 - σ({self_})))"},
    "Relu": {"self": "1 where {self} > 0, else 0"},
    "LeakyRelu": {"self": "1 where {self} > 0, else {negative_slope}"},
    "Clamp": {"self": "1 between the limits, else 0"},
    "ClampMin": {"self": "1 where {self} ≥ {min}, else 0"},
    "ClampMax": {"self": "1 where {self} ≤ {max}, else 0"},
    "Maximum": {"self": "1 where it is the larger, else 0", "other": "1 where it is, else 0"},
    "Minimum": {"self": "1 where it is the smaller, else 0", "other": "1 where it is, else 0"},
    "Where": {"self": "1 where it was taken, else 0", "other": "1 where it was taken, else 0"},
    "MaskedFill": {"self": "0 where the mask is, else 1"},
    "NativeDropout": {"input": "1/(1 - p) where kept, else 0"},
}
"""∂(operation)/∂argument, element by element.  ``{self}`` is that operand with brackets where they
are needed, ``{self_}`` without."""

LINEAR: dict[str, dict[str, str]] = {
    "Sum": {"self": "1 for every element that is summed"},
    "Mean": {"self": "1/n for each of the n elements"},
    "View": {"self": "the same numbers in the operand's shape"},
    "ReshapeAlias": {"self": "the same numbers in the operand's shape"},
    "UnsafeView": {"self": "the same numbers in the operand's shape"},
    "Squeeze": {"self": "the same numbers in the operand's shape"},
    "Unsqueeze": {"self": "the same numbers in the operand's shape"},
    "T": {"self": "the upstream, its dimensions swapped back"},
    "Transpose": {"self": "the upstream, its dimensions swapped back"},
    "Permute": {"self": "the upstream, its dimensions put back in order"},
    "Expand": {"self": "the upstream, summed over the copies"},
    "Repeat": {"self": "the upstream, summed over the copies"},
    "Select": {"self": "the upstream at the place that was taken, 0 elsewhere"},
    "Slice": {"self": "the upstream at the places that were taken, 0 elsewhere"},
    "Index": {"self": "the upstream added at the places that were taken, 0 elsewhere"},
    "IndexSelect": {"self": "the upstream added at the places that were taken, 0 elsewhere"},
    "Gather": {"self": "the upstream added at the places that were taken, 0 elsewhere"},
    "Embedding": {"weight": "the upstream added to the rows that were looked up, 0 elsewhere"},
    "Split": {"self": "the upstreams of all parts, joined"},
    "Unbind": {"self": "the upstreams of all parts, joined"},
    "Cat": {"tensors": "its own part of the upstream"},
    "Stack": {"tensors": "its own part of the upstream"},
    "Mm": {"self": "upstream @ {mat2}ᵀ", "mat2": "{self}ᵀ @ upstream"},
    "Bmm": {"self": "upstream @ {mat2}ᵀ", "mat2": "{self}ᵀ @ upstream"},
    "Mv": {"self": "upstream ⊗ {vec}", "vec": "{self}ᵀ @ upstream"},
    "Dot": {"self": "upstream·{tensor}", "tensor": "upstream·{self}"},
    "Addmm": {
        "self": "the upstream, summed over the rows",
        "mat1": "upstream @ {mat2}ᵀ",
        "mat2": "{mat1}ᵀ @ upstream",
    },
    "Linear": {
        "input": "upstream @ {weight}",
        "weight": "upstreamᵀ @ {input}",
        "bias": "the upstream, summed over the rows",
    },
    "Softmax": {"self": "s·(upstream - Σ s·upstream), s being the result"},
    "LogSoftmax": {"self": "upstream - softmax·Σ upstream"},
    "NllLoss": {"self": "-1/n at each target of n, 0 elsewhere, times the upstream"},
    "MseLoss": {"self": "2·({self} - {target})/n, times the upstream"},
    "Convolution": {
        "input": "the upstream convolved with the kernel, turned around",
        "weight": "{input} correlated with the upstream",
        "bias": "the upstream, summed over all places",
    },
}
"""What is sent to an operand, where that is not a factor for each element."""


def short(op: str) -> str:
    """``Mul`` of ``MulBackward0``."""
    return re.sub(r"Backward(?:Autograd\w*?)?\d*$", "", op)


def derivative(op: str, argument: str, operands: Mapping[str, str]) -> str:
    """∂(operation)/∂argument in these operands, or "" where there is no notation for it.

    Args:
        op: the node's short name.
        argument: of the forward function.
        operands: texts of the arguments, names or numbers.
    """
    if operands.get("alpha", "1") != "1":
        return ""  # a + 2·b in one operation is rare, and torch's formula says it
    if op == "Pow" and argument == "self":
        return _power(operands)
    if op == "Pow" and argument == "exponent":
        return _filled("{self}^{exponent}·ln({self_})", operands)
    return _filled(ELEMENTWISE.get(op, {}).get(argument, ""), operands)


def sent(op: str, argument: str, operands: Mapping[str, str]) -> str:
    """In words what an operation sends to an argument, or ""."""
    return _filled(LINEAR.get(op, {}).get(argument.partition("[")[0], ""), operands)


def general(op: str) -> list[tuple[str, bool, str]]:
    """What an operation does to the gradient, in the names of its own arguments.

    Returns:
        For every argument its name, whether the text is a derivative (or else what is sent), and
        the text; nothing for an operation without notation.
    """
    names = _Names()
    if op == "Pow":
        power = _power({"self": "self", "exponent": "exponent"})
        return [("self", True, power), ("exponent", True, "self^exponent·ln(self)")]
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
        return template.format_map(texts)
    except KeyError:
        return ""  # an operand whose text is not known


def _power(operands: Mapping[str, str]) -> str:
    exponent = operands.get("exponent", "")
    try:
        number = float(exponent)
    except ValueError:
        return _filled("{exponent}·{self}^({exponent_} - 1)", operands)
    if number == 1:
        return "1"
    power = "" if number == 2 else f"^{number - 1:g}"
    return _filled(f"{number:g}·{{self}}{power}", operands)
