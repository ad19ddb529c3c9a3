"""Random graphs for tests in this very process: programs of pieces that only make tensors."""

from __future__ import annotations

import ast
import linecache
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import torch

from tests.fuzz.writer import framed, write

HARMLESS = (
    *("values", "arithmetic", "reductions", "linear algebra", "indexing", "views", "complex"),
    *("in place", "custom functions"),
)
LAST = 6
"""The root is made of so many of the last tensors."""

Tensors = dict[str, torch.Tensor]


@dataclass(frozen=True)
class GraphProgram:
    """A program that can be run again and again, and gives the same tensors each time."""

    seed: str
    text: str

    def build(self) -> tuple[Tensors, torch.Tensor]:
        """All tensors of the program by name, and a root made of the last that need a gradient."""
        name = f"<graph {self.seed}>"
        linecache.cache[name] = (len(self.text), None, self.text.splitlines(True), name)
        namespace: dict[str, Any] = {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(compile(self.text, name, "exec", dont_inherit=True), namespace)
        tensors = {key: one for key, one in namespace.items() if isinstance(one, torch.Tensor)}
        return tensors, namespace["root"]


def graph_program(number: int) -> GraphProgram:
    """The program of a number; the root of every second one is made of a gradient, too."""
    for attempt in count():
        program = _written(f"{number}.{attempt}", bool(number % 2))
        try:
            _, root = program.build()
            for _ in range(2):
                root.backward(retain_graph=True)  # type: ignore[no-untyped-call]
        except Exception:  # such as a derivative that cannot be differentiated
            continue
        return program
    raise AssertionError("count has no end")


def _written(seed: str, is_second_order: bool) -> GraphProgram:
    namespace: dict[str, Any] = {}
    body = write(f"graph {seed}", HARMLESS).body
    lines = [*framed(body, 1)[0], *body]
    kept = _running([line for line in lines if "tell" not in line], namespace)
    tensors = [name for name, value in namespace.items() if _is_differentiable(value)]
    leaves = [name for name in tensors if namespace[name].is_leaf]
    kept += _running([f"root = {_sum(', '.join(tensors[-LAST:]))}"], namespace)
    if is_second_order:
        gradients = f"torch.autograd.grad(root, [{', '.join(leaves)}], create_graph=True"
        kept += _running(
            [
                f"grads = {gradients}, allow_unused=True)",
                "grads = [grad for grad in grads if grad is not None]",
                f"root = root + {_sum('*grads')}",
            ],
            namespace,
        )
    return GraphProgram(seed, "\n".join(kept) + "\n")


def _sum(names: str) -> str:
    return f"sum(one.abs().double().sum() for one in ({names},))"


def _is_differentiable(value: object) -> bool:
    try:
        return isinstance(value, torch.Tensor) and value.requires_grad and value.is_leaf in (0, 1)
    except RuntimeError:  # a view that torch has forbidden
        return False


def _running(lines: Sequence[str], namespace: dict[str, Any]) -> list[str]:
    """Run statements one after the other, and return those that can be run."""
    kept = []
    for statement in ast.parse("\n".join(lines)).body:
        code = compile(ast.Module([statement], []), "<draft>", "exec")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                exec(code, namespace)
            except Exception:
                continue
        kept.append(ast.unparse(statement))
    return kept
