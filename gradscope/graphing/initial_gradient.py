"""Text to tensors: ``--gradient``, ``--root`` and ``--let``.

A gradient is a literal, a word (``ones``, ``onehot:0,2``), a file (``@grad.npy``) or an expression
in the program's namespace.  Every failure is a :class:`RootError` that shows what would have
fitted.
"""

from __future__ import annotations

import builtins
import json
import math
import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import torch
from torch import nn

from gradscope.autograd.elements import is_released
from gradscope.autograd.isolation import functions_on, random_kept
from gradscope.autograd.summary import name_of, shown_shape
from gradscope.errors import RootError, described
from gradscope.words import added_up, count, either, misfit, option


def parse_gradient(given: Any, root: torch.Tensor, namespace: Mapping[str, Any]) -> torch.Tensor:
    """The gradient that is given, in the shape, dtype and device of ``root``.

    Args:
        given: a tensor, numbers, or a text, for which see the module's docstring; ``randn`` draws
            from a generator seeded with 0.
        root: the tensor that backward starts from.
        namespace: the program's variables, for expressions.

    Raises:
        RootError: when it is no tensor, or does not fit the root.
    """
    _refuse_nested(root)
    if not isinstance(given, str):
        return fit(to_tensor(given, "the gradient"), root)
    text = given.strip()
    if text in _WORDS:
        return _WORDS[text](root)
    if text.startswith("onehot:"):
        return _onehot(text, root)
    if text.startswith("@"):
        return fit(_load(text[1:]), root)
    value = evaluate(text, namespace, what="the gradient")
    return fit(to_tensor(value, "the gradient"), root)


def implicit_gradient(root: torch.Tensor) -> torch.Tensor:
    """The gradient 1 that torch supplies for a root of one element.

    Raises:
        RootError: when the root has more elements, so that a gradient has to be chosen.
    """
    _refuse_nested(root)
    if root.layout is not torch.strided:
        # So does torch itself.
        raise RootError(
            f"the root is a tensor of layout {name_of(root.layout)}, "
            "which gets no gradient by itself",
            "start from something dense that is made of it, such as its sum"
            + either(": --root EXPR", ""),
        )
    if root.numel() == 1:
        return torch.ones_like(root, memory_format=torch.preserve_format).detach()
    raise RootError(
        f"the root has shape {shown_shape(root)}, so backward needs a gradient of that shape",
        f"give one weight for each of its {root.numel()} elements: {_fitting(root.shape)}",
    )


def _refuse_nested(root: torch.Tensor) -> None:
    if root.is_nested:
        raise RootError(
            f"the root is a nested tensor of shape {shown_shape(root)}, "
            "which can be given no gradient",
            "start from something that is made of it, such as its sum"
            + either(": --root EXPR", ""),
        )


def parse_leaf(name: str, text: str, namespace: Mapping[str, Any]) -> torch.Tensor:
    """The float leaf that ``--let NAME=VALUE`` makes.

    Raises:
        RootError: when the value is no tensor.
    """
    value = evaluate(text, namespace, what=f"--let {name}")
    tensor = to_tensor(value, f"--let {name}").detach()
    if not isinstance(value, torch.Tensor) or not (
        tensor.is_floating_point() or tensor.is_complex()
    ):
        # As torch.tensor would have made it from the same literal.
        default = torch.get_default_dtype()
        tensor = tensor.to(default.to_complex() if tensor.is_complex() else default)
    return tensor.clone().requires_grad_()


def fill(namespace: dict[str, Any], lets: Iterable[tuple[str, str]]) -> None:
    """Put the names into a namespace that ``-c`` code finds: torch, nn, F, torch's functions, and
    the ``--let`` leaves; python's own names (``sum``, ``max``) keep their meaning.

    Raises:
        RootError: when a ``--let`` value is no tensor.
    """
    for name in dir(torch):
        value = getattr(torch, name)
        # Classes, submodules and constants of torch would only hide the user's own names.
        is_function = type(value) in (type(torch.log), type(torch.einsum))
        if is_function and not name.startswith("_") and not hasattr(builtins, name):
            namespace[name] = value
    namespace.update(torch=torch, nn=nn, F=nn.functional)
    for name, text in lets:
        namespace[name] = parse_leaf(name, text, namespace)


def fit(gradient: torch.Tensor, root: torch.Tensor) -> torch.Tensor:
    """The gradient with the root's dtype and device, if it has its shape.

    Raises:
        RootError: naming both shapes, with the literal reshaped where that is all it lacks.
    """
    one = gradient.dim() == 0 and root.numel() == 1
    if gradient.shape != root.shape and not one:
        raise RootError(
            misfit(shown_shape(gradient), shown_shape(root)),
            _suggestion(gradient, root),
            added_up(gradient.numel(), root.numel()),
        )
    if gradient.is_complex() and not root.is_complex():
        raise RootError(
            f"the gradient is complex, but the root is {name_of(root.dtype)}", "give real numbers"
        )
    seed = gradient.to(dtype=root.dtype, device=root.device).reshape(root.shape)
    overflowed = torch.isinf(seed) & torch.isfinite(gradient.to(root.device).reshape(root.shape))
    if bool(overflowed.any()):
        raise RootError(
            f"a number in the gradient is too large for {name_of(root.dtype)}",
            "the root's dtype sets what its gradient can hold; "
            "use a smaller number, or inf if it is meant",
        )
    return seed.contiguous()


# ---------------------------------------------------------------------- text to values


MAX_TEXT = 200_000
"""Characters of a value given on the command line; more belongs in a file."""

_NUMBERS = {"nan": math.nan, "NaN": math.nan, "inf": math.inf, "Infinity": math.inf}


def evaluate(text: str, namespace: Mapping[str, Any], what: str) -> Any:
    """The value of python text: literals as they are, names from the namespace.

    Raises:
        RootError: when it does not parse or raises.
    """
    if len(text) > MAX_TEXT:
        raise RootError(
            f"{what} is {len(text):,} characters long",
            f"put it into a file: {option('gradient', '@FILE.npy')}",
        )
    try:
        # Wherever the program stands.
        with torch.enable_grad(), functions_on(), random_kept():
            return eval(compile(text, "<gradient>", "eval"), {**_NUMBERS, **namespace})
    except SyntaxError as error:
        raise RootError(
            f"{what} is not valid Python (character {error.offset or 1}): {error.msg}",
            'write it as a literal, as in "[0.1, 1, 0.0001]"',
        ) from None
    except (RecursionError, MemoryError):
        raise RootError(
            f"{what} is nested too deeply", f"put it into a file: {option('gradient', '@FILE.npy')}"
        ) from None
    except NameError as error:
        name = error.name or text
        near = get_close_matches(name, [key for key in namespace if not key.startswith("_")], 3)
        hint = (
            f"nearest names: {', '.join(near)}"
            if near
            else "it can be numbers, ones, zeros, randn, onehot:0, @FILE"
        )
        raise RootError(f"{what}: no variable is called {name!r}", hint) from None
    except Exception as error:
        raise RootError(f"{what}: {described(error)}", f"the text was {clip(text)}") from None


def to_tensor(value: Any, what: str) -> torch.Tensor:
    """A tensor from a tensor, number, or nested list of numbers.

    Raises:
        RootError: it is none, in torch's words.
    """
    if isinstance(value, torch.Tensor):
        if is_released(value):
            raise RootError(
                f"{what} cannot be read: the program has given its memory back",
                "name a tensor whose memory is there, or give numbers",
            )
        return value.detach()
    try:
        # In the widest dtype, so that fitting it to the root is the one rounding there is.
        return torch.tensor(value, dtype=torch.float64)
    except Exception as error:
        refused = described(error)
    try:
        return torch.tensor(value, dtype=torch.complex128)
    except Exception:
        raise RootError(
            f"{what} is not a tensor: {refused}",
            'write numbers in rows of one length, as in "[[0.1, 1], [0, 0.0001]]"',
        ) from None


def clip(text: str) -> str:
    """The text, cut where a message would become too long."""
    return text if len(text) <= 60 else text[:57] + "…"


# ---------------------------------------------------------------------- the forms a gradient has


def _randn(root: torch.Tensor) -> torch.Tensor:
    own = torch.Generator().manual_seed(0)  # the program's random state must not move
    drawn = torch.randn(root.shape, generator=own, dtype=torch.float32, device="cpu")
    return drawn.to(dtype=root.dtype, device=root.device)


_WORDS = {
    "ones": lambda root: torch.ones(root.shape, dtype=root.dtype, device=root.device),
    "zeros": lambda root: torch.zeros(root.shape, dtype=root.dtype, device=root.device),
    "randn": _randn,
}


def _onehot(text: str, root: torch.Tensor) -> torch.Tensor:
    if not re.fullmatch(r"onehot:\s*-?\d+(\s*,\s*-?\d+)*\s*", text):
        raise RootError(
            f"{clip(text)} is not an index", "write onehot:0 or, for two dimensions, onehot:0,2"
        )
    index = tuple(int(part) for part in text.removeprefix("onehot:").split(","))
    seed = torch.zeros(root.shape, dtype=root.dtype, device=root.device)
    try:
        if len(index) != root.dim():
            raise IndexError
        seed[index] = 1
    except IndexError:
        wanted = f"give {count(root.dim(), 'index')}: one a dimension, smaller than its size"
        raise RootError(
            f"{text} does not name an element of the root, which has shape {shown_shape(root)}",
            wanted if root.dim() else "it is one number, so give one: 1",
        ) from None
    return seed


def _load(name: str) -> torch.Tensor:
    path = Path(name).expanduser()
    try:
        match path.suffix.lower():
            case ".npy":
                import numpy

                return torch.from_numpy(numpy.load(path, allow_pickle=False))
            case ".pt" | ".pth":
                return to_tensor(torch.load(path, weights_only=True, map_location="cpu"), name)
            case ".json":
                return to_tensor(json.loads(path.read_text("utf-8")), name)
    except RootError:
        raise
    except Exception as error:
        raise RootError(
            f"cannot read a gradient from {name}: {described(error)}",
            "it can be a .npy, .pt or .json file holding one tensor",
        ) from None
    raise RootError(f"cannot tell the format of {name}", "name it .npy, .pt or .json")


def _suggestion(gradient: torch.Tensor, root: torch.Tensor) -> str:
    if gradient.numel() == root.numel() <= 64:
        reshaped = gradient.reshape(root.shape)
        return f'it has the right number of elements: --gradient "{_text(reshaped.tolist())}"'
    return f"one that fits: {_fitting(root.shape)}"


def _fitting(shape: torch.Size) -> str:
    """Options that give a gradient of this shape."""
    ones = option("gradient", "ones")
    if shape.numel() <= 16:
        literal = _text(torch.ones(shape).tolist())
        other = either(f'--gradient "{literal}"', f"gradient={literal}")
        return f"{ones}, or {other}"
    return f"{ones}, or {option('gradient', '@FILE.npy')}"


def _text(value: Any) -> str:
    return re.sub(r"\.0(?=[,\]]|$)", "", str(value))
