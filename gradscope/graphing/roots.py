"""Which tensor to start from: ``--root``, or the result that speaks for itself."""

from __future__ import annotations

import gc
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.nn.parameter import is_lazy

from gradscope.autograd.calls import edge_of
from gradscope.autograd.isolation import living_tensors
from gradscope.autograd.nodes import make_release_safe, walk
from gradscope.autograd.summary import shown_shape
from gradscope.autograd.tensors import grad_fn_of, is_functorch_wrapped, requires_grad
from gradscope.errors import CaptureError, NoGraph, RootError
from gradscope.graphing.blame import where
from gradscope.graphing.initial_gradient import evaluate
from gradscope.recording.events import TensorOrigin
from gradscope.recording.modules import items_of
from gradscope.recording.names import Scopes, value_at
from gradscope.recording.recorder import Recorder
from gradscope.words import count, either, listed, nearest


class Unusable(RootError):
    """The value that ``--root`` leads to carries no gradient history, as it is now."""


MAX_LISTED = 8
"""Candidates and names listed in one message."""


def named_root(text: str, scopes: Scopes, recorder: Recorder) -> torch.Tensor | None:
    """The tensor that ``--root`` names, or None when its names do not exist (yet).

    Raises:
        RootError: when the expression is wrong; :class:`Unusable` when it gives something that
            carries no gradient.
    """
    for namespace in _views(scopes):
        try:
            value = evaluate(text, namespace, what="--root")
        except RootError as error:
            # A name that is missing in an inner function may be found further out, or later.
            if "no variable is called" not in error.what:
                raise
            continue
        return usable_root(value, f"--root {text}", text, recorder)
    return None


def named_tensor(text: str, scopes: Scopes) -> torch.Tensor | None:
    """The tensor that a name leads to from some variables in sight, whether or not it requires
    grad; None where there is none.  Runs nothing: who gives a name gives no code."""
    found = (value_at(text, namespace) for namespace in _views(scopes))
    return next((value for value in found if isinstance(value, torch.Tensor)), None)


def unknown_root(text: str, names: Iterable[str]) -> RootError:
    """The error for a ``--root`` that never existed: the names that did, nearest first."""
    near = listed(nearest(text, names), MAX_LISTED)
    hint = f"available tensors: {near}" if near else "the program has no tensor there"
    return RootError(f"--root {text}: no such variable at a backward call, or at the end", hint)


def no_such_call(wanted: int, calls: int) -> CaptureError:
    """Why the call that was asked for cannot be shown."""
    return CaptureError(
        f"the program made {count(calls, 'backward call')}, so there is no call {wanted}",
        f"--call takes 1{f' to {calls}' * (calls > 1)}",
    )


def usable_root(value: Any, shown: str, path: str, recorder: Recorder) -> torch.Tensor:
    """The value, if backward can start from it.

    ``shown`` is how a message calls it, ``path`` the expression that leads to it.

    Raises:
        Unusable: saying what it is instead, and for a tensor which line left it without history.
    """
    if not isinstance(value, torch.Tensor):
        inside = [inner for inner, _ in tensors_inside(value, path)][:MAX_LISTED]
        raise Unusable(
            f"{shown} is of type {type(value).__name__}, not a tensor",
            f"tensors in it: {', '.join(inside)}" if inside else "name a tensor that requires grad",
        )
    # Asked first, because such a parameter raises at nearly all other questions.
    if is_lazy(value):
        raise RootError(
            f"{shown} has no shape and no numbers yet: it is a parameter of a lazy module",
            "call the module with data before, as training does",
        )
    if not requires_grad(value):
        raise without_history(value, shown, recorder)
    return value


def tensors_inside(value: Any, path: str) -> Iterator[tuple[str, torch.Tensor]]:
    """Tensors with history in nested lists, tuples and dicts, with the expression that leads to
    each."""
    stack: list[tuple[str, Any, int]] = [(path, value, 0)]
    while stack:
        name, item, depth = stack.pop()
        if isinstance(item, torch.Tensor):
            if requires_grad(item):
                yield name, item
        elif depth < 4:
            inside = items_of(name, dict(item) if isinstance(item, Mapping) else item)
            # Last in, first out.
            stack += reversed([(one, child, depth + 1) for one, child in inside])


def _spoken_for(found: Sequence[tuple[Sequence[str], torch.Tensor]]) -> tuple[int, str]:
    """Which of several tensors, each with its names, is meant, and why; "" where nothing says."""
    scalars = [number for number, (_, tensor) in enumerate(found) if tensor.numel() == 1]
    losses = [number for number in scalars if any(map(_is_loss, found[number][0]))]
    # `loss` itself rather than one of its kind inside something else, and the one made last.
    plain = [number for number in losses if "loss" in found[number][0]]
    if losses:
        return (plain or losses)[-1], "the scalar of that name"
    if len(scalars) == 1:
        return scalars[0], "the only scalar"
    return 0, ""


def _is_loss(name: str) -> bool:
    return name == "loss" or name.endswith((".loss", "['loss']"))


def last_results(recorder: Recorder) -> list[torch.Tensor]:
    """Living tensors with a grad_fn that no other living tensor was made from.

    Finds them among all objects, which costs nothing while the program runs.
    """
    found = _tips(recorder)
    if len(found) > 1:
        # What only a reference cycle keeps alive is no result; to find out takes a while.
        del found
        gc.collect()
        found = _tips(recorder)
    return found


def last_made(recorder: Recorder) -> torch.Tensor | None:
    """The living result that was made last: of a program that has failed."""
    return max(
        _results(recorder), key=lambda tensor: edge_of(tensor)[0]._sequence_nr(), default=None
    )


def _results(recorder: Recorder) -> list[torch.Tensor]:
    """All living tensors that calls seen by this recorder have made."""
    return [
        tensor
        for tensor in living_tensors()
        # What a transform of torch.func has made belongs to the transform.
        if not is_functorch_wrapped(tensor) and recorder.has_seen(grad_fn_of(tensor))
    ]


def _tips(recorder: Recorder) -> list[torch.Tensor]:
    found = _results(recorder)
    if not found:
        return []
    # One walk over everything that lives: whatever an edge leads to was used by something.
    walked = walk(edge_of(tensor)[0] for tensor in found)
    make_release_safe(walked)
    used = {target for _, _, target, _ in walked.edges}
    tips: dict[tuple[int, int], torch.Tensor] = {}
    for tensor in found:
        node, output = edge_of(tensor)
        if walked.index[node] not in used:
            tips.setdefault((walked.index[node], output), tensor)
    # In the order of the program, and not in that in which the collector happens to know them.
    return sorted(tips.values(), key=lambda tensor: edge_of(tensor)[0]._sequence_nr())


def main_result(
    value: Any, recorder: Recorder, scopes: Scopes
) -> tuple[torch.Tensor | None, list[str]]:
    """The result to start from, of those in what a function or an expression gave, else of those
    that the program left; None when there is none.  Of several a note says which it is: the scalar
    that is called ``loss``, else the only scalar, else of those left the one made last.

    Raises:
        CaptureError: when there are several, and nothing speaks for one; lists them with their
            lines.
    """
    given = [([path], tensor) for path, tensor in tensors_inside(value, "_")]
    found = given or [(scopes.names(tensor), tensor) for tensor in last_results(recorder)]
    if len(found) <= 1:
        return (found[0][1] if found else None), []
    position, why = _spoken_for(found)
    held = [number for number, (names, _) in enumerate(found) if names]
    if held and not (why or given):
        position, why = held[-1], "the one made last"
    lines = [_describe(names, tensor, recorder) for names, tensor in found]
    results = f"the {'target gives' if given else 'program leaves'} {len(found)} results"
    if not why:
        shown = lines[:MAX_LISTED]
        if len(found) > MAX_LISTED:
            shown.append(f"… and {len(found) - MAX_LISTED} more")
        raise CaptureError(
            f"{results}:" if given else f"{results} that nothing else was made from:",
            *(f"  {line}" for line in shown),
            either(
                f"choose one: --root {shlex.quote(given[0][0][0]) if given else 'NAME'}",
                "call backward on one of them in the block, or examine one: run.doctor(loss)",
            ),
        )
    others = listed((line for line in lines if line is not lines[position]), MAX_LISTED)
    another = either("--root NAME shows another", "backward of another shows that")
    names, root = found[position]
    name = names[0] if names else lines[position]
    return root, [f"{results}; this is {name}, {why}; the others: {others}; {another}"]


def nothing_requires_grad(recorder: Recorder) -> bool:
    """Whether the program made no leaf, no module and no result with history."""
    # A program that trained inside a function leaves nothing, and yet nothing is wrong with it.
    leaves = recorder.events.has_leaves()
    return not (recorder.has_made_nodes or leaves or recorder.modules.roots)


def no_graph(recorder: Recorder) -> NoGraph:
    """The error for a program that left nothing to walk."""
    if recorder.transforms:
        return NoGraph(
            "no autograd graph: the program differentiates with torch.func, and what a transform "
            "walks is gone when it ends",
            "look at what it transforms: let a function return that result for leaves that require "
            "grad, FILE.py::FUNCTION",
        )
    if nothing_requires_grad(recorder):
        return NoGraph(
            "no autograd graph: no tensor of the program requires grad",
            "make a leaf with requires_grad=True, or call a module with parameters",
        )
    return NoGraph(
        "no autograd graph: the program kept no result that requires grad",
        either(
            "name one that exists at a backward call with --root, or point at a function that "
            "returns it: FILE.py::FUNCTION",
            "keep the result in a variable",
        ),
    )


def _describe(names: Sequence[str], tensor: torch.Tensor, recorder: Recorder) -> str:
    site = recorder.site_of(edge_of(tensor)[0]._sequence_nr())
    place = ""
    if site is not None:
        origin = recorder.sources.origin(site)
        place = f" {origin}"
        # What no variable holds is known by how it was made.
        place += "" if names else f" {' '.join(origin.expression.split())}"
    return f"{names[0] if names else '(no name)'} {shown_shape(tensor)}{place}"


def without_history(tensor: torch.Tensor, shown: str, recorder: Recorder) -> Unusable:
    """Why backward cannot start from a tensor that does not require grad."""
    made = recorder.events.made(tensor)
    what = f"{shown} carries no gradient history"
    if made is None:
        hint = "nothing it was made from requires grad"
        return Unusable(f"{what}: it does not require grad", hint)
    place = ""
    if made.site is not None:
        place = f", made by {where(made.site, recorder)},"
    what = f"{what}: the tensor{place} does not require grad"
    return Unusable(what, _reason(made, tensor))


def _reason(made: TensorOrigin, tensor: torch.Tensor) -> str:
    if not made.grad_enabled:
        return "that line ran under torch.no_grad() (or set_grad_enabled(False)); move it out"
    if not (tensor.is_floating_point() or tensor.is_complex()):
        return f"{tensor.dtype} tensors cannot carry gradients"
    if made.had_history:
        return f"{made.function} cut it off from the tensors that require grad"
    return "none of the tensors it was made from requires grad: set requires_grad=True on a leaf"


def _views(scopes: Scopes) -> Iterator[Mapping[str, Any]]:
    """Locals with their globals, innermost first, as the code there would see them."""
    return map(scopes.merged, range(len(scopes.namespaces)))
