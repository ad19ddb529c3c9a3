"""The program's own backward calls, in one form whichever way they were made.

``Tensor.backward``, ``torch.autograd.backward`` and ``torch.autograd.grad`` take the same things
under different names.  Knows nothing of graphs or Reports.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import Any

import torch
from torch.autograd import forward_ad
from torch.autograd.graph import GradientEdge, get_gradient_edge
from torch.autograd.graph import Node as LiveNode

from gradscope.autograd.isolation import functions_off, own_pass
from gradscope.autograd.tensors import is_functorch_wrapped, requires_grad


@dataclass
class BackwardCall:
    """One call, not yet made.

    ``roots`` and ``gradients`` are as the program gave them, one gradient (or None) a root.
    ``accumulates`` tells ``backward`` from ``grad``.  ``batched`` gradients are vectorised by torch
    and cannot be read on the way.  ``frame`` is the program's frame that made the call.
    ``is_handed_on``: to run it is to hand it to somebody else, who makes it.

    With a function alone it is one of ours, in the same form, which keeps the graph, accumulates
    nothing, and returns a gradient for each of the inputs.
    """

    roots: list[torch.Tensor | GradientEdge]
    gradients: list[torch.Tensor | None]
    inputs: list[torch.Tensor | GradientEdge]
    frame: FrameType
    _function: Callable[..., Any]
    _given: dict[str, Any] = field(default_factory=dict)
    accumulates: bool = False
    retain_graph: bool = True
    create_graph: bool = False
    batched: bool = False
    is_handed_on: bool = False

    @classmethod
    def parse(
        cls, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], frame: FrameType
    ) -> BackwardCall | None:
        """Read the arguments of a call; None when torch itself would refuse them, or when it is a
        detail of ``torch.func``."""
        given = _given(function, args, kwargs)
        if given is None:
            return None
        # Only ``torch.autograd.grad`` names its roots "outputs".
        accumulates = "outputs" not in given
        # The same three things, as the three functions name them.
        roots = _as_list(given.get("self", given.get("tensors", given.get("outputs"))))
        gradients = given.get("gradient", given.get("grad_tensors", given.get("grad_outputs")))
        create_graph = bool(given.get("create_graph"))
        retain = given.get("retain_graph")
        # No gradient at all is allowed for every root of one element.
        seeds = _as_list(gradients) or [None] * len(roots)
        inputs = _as_list(given.get("inputs"))
        # Torch refuses these itself, and in its own words.
        if len(seeds) != len(roots) or not all(map(_differentiable, roots)):
            return None
        if _is_of_a_transform([*roots, *inputs]):
            return None
        return cls(
            roots=roots,
            gradients=seeds,
            inputs=inputs,
            accumulates=accumulates,
            # Torch's own default: what is made by create_graph leads into the graph, which has to
            # stay.
            retain_graph=create_graph if retain is None else bool(retain),
            create_graph=create_graph,
            batched=bool(given.get("is_grads_batched")),
            frame=frame,
            _given=given,
            _function=function,
        )

    @property
    def is_inner(self) -> bool:
        """Whether a later call may build on what this one returns."""
        return self.create_graph and not self.accumulates

    def handed_on(self, make: Callable[[], Any]) -> BackwardCall:
        """Return this call so that ``make`` is called when it is run."""
        return replace(self, _function=lambda *_, **__: make(), is_handed_on=True)

    def run(self) -> Any:
        """Make the call as the program meant it."""
        return self._function(**self._given)


def edge_of(root: torch.Tensor | GradientEdge) -> tuple[LiveNode, int]:
    """The node and output number where the gradient of a tensor arrives (also of a leaf)."""
    if isinstance(root, GradientEdge):
        return root.node, root.output_nr
    with functions_off():
        try:
            # Inside, torch reads attributes of the tensor, which a class of the program would hear.
            edge = get_gradient_edge(root)
        except RuntimeError:  # torch makes a view of a leaf, and sparse and nested ones have none
            with torch.enable_grad():
                copy: Any = root.clone()
            return copy.grad_fn.next_functions[0]  # type: ignore[no-any-return]
    return edge.node, edge.output_nr


def sent_back(
    roots: Iterable[torch.Tensor | GradientEdge],
    inputs: Iterable[torch.Tensor | GradientEdge],
    gradients: Iterable[torch.Tensor],
    retain_graph: bool = False,
    create_graph: bool = False,
) -> tuple[torch.Tensor | None, ...]:
    """``torch.autograd.grad`` for gradients that are known to fit, None where an input gets none.

    To check their shapes torch would import sympy into the program's process, which leaves a filter
    of warnings there.
    """
    engine: Any = torch.autograd
    found: tuple[torch.Tensor | None, ...] = engine._engine_run_backward(
        tuple(roots),
        tuple(gradients),
        retain_graph or create_graph,
        create_graph,
        tuple(inputs),
        True,
        accumulate_grad=False,
    )
    return found


def own_grad(
    roots: Iterable[torch.Tensor | GradientEdge],
    inputs: Iterable[torch.Tensor | GradientEdge],
    gradients: Iterable[torch.Tensor | None],
    create_graph: bool = False,
) -> tuple[torch.Tensor | None, ...]:
    """``torch.autograd.grad`` for a pass of ours: what the program put into the graph runs as it
    would in a pass of its own, but classes of its tensors do not hear of the call."""
    # Of a gradient from edge to edge torch tells no class.
    starts, ends = ([GradientEdge(*edge_of(one)) for one in of] for of in (roots, inputs))
    given = list(gradients)
    with own_pass():
        known = [one for one in given if one is not None]
        if len(known) == len(given):
            return sent_back(starts, ends, known, True, create_graph)
        return torch.autograd.grad(starts, ends, given, True, create_graph, allow_unused=True)


@functools.cache
def _parameters(function: Any) -> dict[str, Any]:
    """The names of what a function takes, each with its default."""
    parameters = inspect.signature(function).parameters.values()
    return {one.name: one.default for one in parameters}


def _given(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any] | None:
    """The arguments of a call by name, for the program may give any by its place; None where they
    do not fit."""
    # Not by `Signature.bind`, which takes as long as a small step.
    known = _parameters(function)
    given = dict(zip(known, args, strict=False)) | kwargs
    # One given twice, or too many, is missing in the count.
    if len(given) < len(args) + len(kwargs) or not given.keys() <= known.keys():
        return None
    given = known | given
    return None if any(one is inspect.Parameter.empty for one in given.values()) else given


def _differentiable(root: object) -> bool:
    return isinstance(root, GradientEdge) or (
        isinstance(root, torch.Tensor) and requires_grad(root)
    )


def _is_of_a_transform(tensors: list[Any]) -> bool:
    """Whether a pass is a detail of ``torch.func``, over tensors that nobody can walk.

    What a transform wraps may outlive it: ``vjp`` returns a function that starts from such a shell.
    """
    return is_inside_a_transform() or any(
        isinstance(one, torch.Tensor) and is_functorch_wrapped(one) for one in tensors
    )


def is_inside_a_transform() -> bool:
    """Whether the program is inside of a function that ``torch.func`` transforms."""
    return torch._C._functorch.peek_interpreter_stack() is not None


def is_deriving() -> bool:
    """Whether the program is inside of a function of which ``torch.func`` or forward-mode takes the
    derivative."""
    levels = torch._C._functorch.get_interpreter_stack() or ()
    kinds = (torch._C._functorch.TransformType.Grad, torch._C._functorch.TransformType.Jvp)
    return any(one.key() in kinds for one in levels) or forward_ad._current_level >= 0


def unwrapped(tensor: torch.Tensor) -> torch.Tensor:
    """What the transforms of ``torch.func`` have wrapped; most tensors as they are."""
    while is_functorch_wrapped(tensor):
        tensor = torch._C._functorch.get_unwrapped(tensor)
    return tensor


def differentiable_inside(args: tuple[Any, ...]) -> list[torch.Tensor]:
    """The roots of a pass of ``torch.func`` that makes nodes which the program can walk: those
    that have a history beside the one of the transform."""
    roots = _as_list(args[0]) if args else []
    return [one for one in roots if isinstance(one, torch.Tensor) and _has_outer_history(one)]


def _has_outer_history(tensor: torch.Tensor) -> bool:
    inner = unwrapped(tensor) if requires_grad(tensor) else tensor
    return inner is not tensor and requires_grad(inner)


def _as_list(value: Any) -> list[Any]:
    if value is None:
        return []
    if isinstance(value, (torch.Tensor, GradientEdge)):
        return [value]
    # Torch takes the `values()` of a dict as well, which is no Sequence.
    return list(value) if isinstance(value, Sequence) else [*value]
