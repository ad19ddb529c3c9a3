"""What an expression of the program says its operands are: ``3*a`` multiplies ``3`` and ``a``.

Reads source text only; knows nothing of graphs or of values.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

_OPERATORS: dict[type[ast.operator], tuple[str, tuple[str, ...]]] = {
    ast.Mult: ("*", ("Mul",)),
    ast.Add: ("+", ("Add",)),
    ast.Sub: ("-", ("Sub", "Rsub")),
    ast.Div: ("/", ("Div",)),
    ast.Pow: ("**", ("Pow",)),
    ast.MatMult: ("@", ("Mm", "Mv", "Dot", "Bmm")),
}
"""Python's operators, how they are written, and the nodes that they make."""

_ALSO = {"_to_copy": ("to", "type", "float", "double", "half", "bfloat16")}
"""Other names under which a program calls torch's function."""

_MODULES = ("F", "functional", "special", "linalg")

PYTHONS = {"embedding": ("indices", "weight"), "embedding_bag": ("indices", "weight", "offsets")}
"""Functions of ``torch.nn.functional`` that take their operands in another order than torch's own
of the same name."""


@dataclass(frozen=True)
class Operation:
    """An operation as the program wrote it: an operator between two operands, one in front of an
    operand, or the name of a function; the texts of its operands, and of keyword arguments.

    ``on``: what the function was called on: ``self`` for a method of the first operand, else the
    name of its module.
    """

    sign: str
    operands: tuple[str, ...]
    text: str
    keywords: tuple[str, ...] = ()
    on: str = ""

    @property
    def is_call(self) -> bool:
        """Whether it is written as a function call."""
        return self.sign.isidentifier()

    def order(self, parameters: Iterable[str]) -> list[str]:
        """The parameters that the operands stand for, out of all that torch's schema lists."""
        names = list(parameters)
        if self.on == "self" and "self" in names:
            names.remove("self")
            names.insert(0, "self")
        elif self.on not in ("self", "torch") and self.sign in PYTHONS:
            names = list(PYTHONS[self.sign])
        return names[: len(self.operands)]

    def write(self, operands: Sequence[str]) -> str:
        """The operation with other texts for its operands."""
        if self.is_call:
            return f"{self.sign}({', '.join((*operands, *self.keywords))})"
        if len(operands) == 1:
            return f"{self.sign}{bracketed(operands[0])}"
        gap = "" if self.sign == "**" else " "
        return f"{gap}{self.sign}{gap}".join(
            self._grouped(text, place) for place, text in enumerate(operands)
        )

    def _grouped(self, text: str, place: int) -> str:
        # A sum needs no brackets around its terms; everything else is safer with them.
        return text if self.sign == "+" or (self.sign == "-" and not place) else bracketed(text)


def read(expression: str, op: str, function: str) -> tuple[Operation, ...]:
    """What a node may stand for in its expression; nothing where the expression does not say so: it
    may be a call of a layer, or stand for several nodes.

    There are two readings of ``TF.relu(x)``: a module's function, and a method of a tensor.

    Args:
        expression: source text.
        op: the node's short name, such as ``Mul``.
        function: torch's name of the forward function, such as ``mul``.
    """
    text = expression.strip()
    tree = _parsed(text)
    match tree:
        case ast.BinOp(left, operator, right):
            sign, makes = _OPERATORS.get(type(operator), ("", ()))
            return (Operation(sign, _texts(text, left, right), text),) if op in makes else ()
        case ast.UnaryOp(ast.USub(), operand) if op == "Neg":
            return (Operation("-", _texts(text, operand), text),)
        case ast.Call() if not _is_starred(tree):
            return tuple(_calls(text, tree, function))
    return ()


def _parsed(text: str) -> ast.expr | None:
    """The syntax of an expression; None where it has none, or too much."""
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _calls(text: str, call: ast.Call, function: str) -> Iterator[Operation]:
    name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
    if name.strip("_") not in (function.strip("_"), *_ALSO.get(function, ())):
        return
    texts = _texts(text, *call.args)
    values = _texts(text, *(one.value for one in call.keywords))
    keywords = (f"{one.arg}={value}" for one, value in zip(call.keywords, values, strict=True))
    written = tuple(keywords)
    if not isinstance(call.func, ast.Attribute):
        yield Operation(name, texts, text, written)
        return
    owner = _names(call.func.value)
    is_module = owner[-1:] in [(one,) for one in _MODULES] or owner[:1] == ("torch",)
    if not is_module:
        yield Operation(name, (*_texts(text, call.func.value), *texts), text, written, "self")
    if owner:
        yield Operation(name, texts, text, written, owner[-1])


def _names(owner: ast.expr) -> tuple[str, ...]:
    """The names of a path of attributes, ``("torch", "nested")``; nothing for anything else."""
    match owner:
        case ast.Name(name):
            return (name,)
        case ast.Attribute(value, name) if inner := _names(value):
            return (*inner, name)
    return ()


def part_of_target(target: str, number: int, count: int) -> str:
    """What a statement calls one of so many results: ``k`` for the second of ``q, k, v``; the whole
    target where it has another number of names."""
    tree = _parsed(target) if count > 1 else None
    if tree is None:
        return target
    names = list(_targets(tree))
    is_plain = len(names) == count and not any(isinstance(one, ast.Starred) for one in names)
    return ast.unparse(names[number]) if is_plain else target


def _targets(target: ast.expr) -> Iterator[ast.expr]:
    if not isinstance(target, (ast.Tuple, ast.List)):
        yield target
        return
    for one in target.elts:
        yield from _targets(one)


def _is_starred(call: ast.Call) -> bool:
    return any(isinstance(argument, ast.Starred) for argument in call.args) or any(
        keyword.arg is None for keyword in call.keywords
    )


def _texts(source: str, *nodes: ast.expr) -> tuple[str, ...]:
    return tuple(ast.get_source_segment(source, node) or ast.unparse(node) for node in nodes)


def share_a_name(texts: Sequence[str]) -> bool:
    """Whether a variable stands in more than one of these texts, so that a derivative by one of
    them would be read as the derivative by that variable."""
    names = [set(re.findall(r"[^\W\d][\w.]*", text)) for text in texts]
    return any(left & right for i, left in enumerate(names) for right in names[i + 1 :])


def bracketed(text: str) -> str:
    """A text that can stand beside an operator: in brackets, unless it is one thing already."""
    tree = _parsed(text)
    if tree is None:
        return text if re.fullmatch(r"[\w.…#]+", text) else f"({text})"
    alone = (ast.Name, ast.Call, ast.Attribute, ast.Subscript, ast.Constant, ast.List)
    return text if isinstance(tree, alone) else f"({text})"


def parameters(schema: str) -> dict[str, str]:
    """The types of a function's parameters by their names, in order, as torch's schema
    ``mul(Tensor self, Tensor other) -> Tensor`` has them."""
    inside = re.sub(r"\([^)]*\)", "", schema.partition("(")[2].rpartition(") ->")[0])
    pairs = (part.partition("=")[0].strip().rpartition(" ") for part in inside.split(","))
    return {name: kind for kind, _, name in pairs if kind}


def is_number(text: str) -> bool:
    """Whether a text is a plain number."""
    try:
        float(text)
    except ValueError:
        return False
    return True
