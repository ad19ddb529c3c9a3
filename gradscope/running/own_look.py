"""A look that no backward call of the program takes of itself: from the root that ``--root`` names,
with the gradient of ``--gradient``, of the gradient of a leaf (``--create-graph``), or at what the
program has left when it ends; and at one tensor from inside a running program.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from types import FrameType
from typing import Any

import torch
from torch.autograd.graph import GradientEdge

from gradscope.autograd.calls import BackwardCall, own_grad
from gradscope.autograd.isolation import grads_preserved, hidden
from gradscope.autograd.nodes import leaf_of
from gradscope.autograd.tensors import grad_fn_of, requires_grad
from gradscope.errors import CaptureError, GradscopeError, RootError, described
from gradscope.graphing.initial_gradient import fit, implicit_gradient, parse_gradient
from gradscope.graphing.probe import Probe
from gradscope.graphing.roots import (
    Unusable,
    last_made,
    main_result,
    named_root,
    no_graph,
    no_such_call,
    unknown_root,
    usable_root,
    without_history,
)
from gradscope.graphing.study import LiveGraph, listener_of, named_place, studied
from gradscope.graphing.watched_call import initial
from gradscope.handlers import let_pass
from gradscope.model.report import Graph, Report
from gradscope.model.request import Request, Study
from gradscope.recording.names import Scopes
from gradscope.recording.places import frames_from
from gradscope.recording.recorder import Recorder
from gradscope.words import added_up


def single(call: BackwardCall) -> torch.Tensor:
    """The one root of a call.

    Raises:
        RootError: when it starts from several.
    """
    root = call.roots[0]
    if len(call.roots) != 1 or not isinstance(root, torch.Tensor):
        raise RootError(
            f"the program's backward call starts from {len(call.roots)} tensors at once",
            "choose one of them: --root NAME",
        )
    return root


def misfit(call: BackwardCall) -> list[str]:
    """Why the gradient that the program gave, or did not give, does not fit its root."""
    for root, given in zip(call.roots, call.gradients, strict=True):
        try:
            # A nested root has no one shape that a gradient could be held against.
            if isinstance(root, torch.Tensor) and not root.is_nested:
                _ = implicit_gradient(root) if given is None else fit(given, root)
        except RootError as error:
            fitting = _fitting_code(root, given)  # type: ignore[arg-type]
            return [f"{error.what}; {fitting}" if fitting else str(error)]
    return []


def _fitting_code(root: torch.Tensor, given: torch.Tensor | None) -> str:
    """What to write in the program, where the shape is what is wrong."""
    sizes = ", ".join(map(str, root.shape))
    if given is None:
        weights = f"{root.numel():,} elements, as in backward(torch.ones({sizes}))"
        return f"give one weight for each of its {weights}"
    if given.shape == root.shape or given.numel() == root.numel() == 1:
        return ""
    if given.numel() == root.numel():
        return f"it has the right number of elements: give its .reshape({sizes})"
    more = added_up(given.numel(), root.numel())
    return f"one that fits: torch.ones({sizes or '()'})" + (f"; {more}" if more else "")


def batched(call: BackwardCall, scopes: Scopes) -> CaptureError:
    """Why the gradients of a vectorised call cannot be read."""
    names = [name for root in call.roots for name in scopes.names(root)]  # type: ignore[arg-type]
    return CaptureError(
        "this torch.autograd.grad call is vectorised (is_grads_batched), so its gradients "
        "cannot be read one by one",
        f"look at one row: --root {shlex.quote(names[0]) if names else 'NAME'} --gradient onehot:0",
    )


def refusal(recorder: Recorder, frames: list[FrameType]) -> GradscopeError | None:
    """Why the program's backward call had nowhere to go, if that is how it failed."""
    refused = (reference() for reference in recorder.refused)
    # Weak references: an operand that the program has let go of since has no name to tell.
    for tensor in (one for one in refused if one is not None):
        names = Scopes.of_frames(recorder.places.own_frames(frames)).names(tensor)
        return without_history(tensor, names[0] if names else "the root", recorder)
    return None


class OwnLook:
    """Looks from a root of its own.

    Args:
        request: what was asked.
        recorder: what is known of how the graph was made.
        listener: who has heard of the calls behind it, where the recorder does not know.
    """

    def __init__(self, request: Request, recorder: Recorder, listener: Any) -> None:
        self._request = request
        self._recorder = recorder
        self._listener = listener
        self._unusable: Unusable | None = None
        self._seen: dict[str, None] = {}

    def at_call(self, call: BackwardCall, scopes: Scopes) -> Report | None:
        """The look at a backward call of the program; None where its root may yet come.

        Raises:
            GradscopeError: there can be none.
        """
        if self._request.root:
            root = self._named(scopes)
            if root is None:
                return None
            return self.take(self._derived([root], scopes, call.frame), scopes, call)
        if self._request.create_graph is not None:
            root = self._derived(call.roots, scopes, call.frame, call.gradients)
            return self.take(root, scopes)
        if self._request.gradients:
            return self.take(single(call), scopes)
        return self._shown(call.roots, scopes)

    def at_end(self, scopes: Scopes, value: object, calls: int) -> Report:
        """The look at what a program has left that made so many backward calls.

        Raises:
            GradscopeError: there can be none.
        """
        root, notes = self._final_root(scopes, value, calls)
        try:
            return self.take(self._derived([root], scopes), scopes, notes=notes)
        except RootError as error:
            # Who is asked for a gradient has to know of what.
            raise type(error)(error.what, *error.hints, *notes) from None

    def of_failed(self, scopes: Scopes, error: BaseException, calls: int) -> Report | None:
        """The graph that a program had made when it failed; None where it had none."""
        request, recorder = self._request, self._recorder
        ended = f"the program ended with {type(error).__name__}"
        if calls < (request.call or 0):
            ended += f" before backward call {request.call}"
        last, what = last_made(recorder), "the last result it had made by then"
        if request.root is not None:
            named = named_root(request.root, scopes, recorder)
            if named is None:
                ended += f", and no variable --root {request.root} was there by then"
            else:
                last, what = named, f"--root {request.root}"
        if last is None or grad_fn_of(last) is None:
            return None
        return self._shown([last], scopes, [f"{ended}; this is the graph of {what}"])

    def _final_root(
        self, scopes: Scopes, value: object, calls: int
    ) -> tuple[torch.Tensor, list[str]]:
        request = self._request
        if 0 < calls < (request.call or 0):
            raise no_such_call(request.call or 0, calls)
        named = self._named(scopes, is_over=True)
        if named is not None:
            return named, []
        if isinstance(value, torch.Tensor):
            return usable_root(value, "the result", "_", self._recorder), []
        root, notes = main_result(value, self._recorder, scopes)
        if root is None:
            raise no_graph(self._recorder)
        return root, notes

    def take(
        self,
        root: torch.Tensor,
        scopes: Scopes,
        call: BackwardCall | None = None,
        notes: Sequence[str] = (),
    ) -> Report:
        request, seed = self._request, None
        if request.gradients and request.gradient is not None:
            seed = parse_gradient(request.gradient, root, scopes.merged())
        elif request.gradients:
            try:
                seed = implicit_gradient(root)
                # Not of the gradient of a leaf, which --create-graph makes.
                name = None if request.create_graph else request.root
                if call is not None and name and all(one is not root for one in call.roots):
                    note = f"backward starts from {name} with 1, as no --gradient is given"
                    notes = (*notes, note)
            except RootError:
                study = request.study
                if not (request.or_graph or (study and not study.needs_gradient)):
                    raise
        return self._shown([root], scopes, notes, seed)

    def _shown(
        self,
        roots: Sequence[Any],
        scopes: Scopes,
        notes: Sequence[str] = (),
        seed: torch.Tensor | None = None,
    ) -> Report:
        """The graph from these roots, and a gradient sent through it from the only one."""
        request, recorder = self._request, self._recorder
        # After the root and the gradient: a call can be wrong before it lacks anything.
        listener = self._listener or _listener(recorder, request.study)
        probe = Probe(roots, recorder, scopes, request)
        live = LiveGraph(probe, roots, [seed] * len(roots), recorder, listener, scopes)
        answer = studied(request.study, live)
        passes = [] if seed is None else [probe.own_pass(seed)]
        return probe.report(passes, notes, answer)

    def _named(self, scopes: Scopes, is_over: bool = False) -> torch.Tensor | None:
        """The root of ``--root``, at a backward call or when the program is over; None if it may
        yet come, or none is named.

        Raises:
            RootError: the expression is wrong; or the program is over, and it never came, or was no
                tensor with history.
        """
        text = self._request.root
        if not text:
            return None
        try:
            root = named_root(text, scopes, self._recorder)
        except Unusable as error:
            # `loss = 0.0` before a loop: what it is to be may come.
            if is_over:
                raise
            self._unusable = error
            return None
        if root is None:
            self._seen.update(dict.fromkeys(scopes.variable_names()))
            if is_over:
                raise self._unusable or unknown_root(text, self._seen)
        return root

    def _derived(
        self,
        roots: Sequence[Any],
        scopes: Scopes,
        frame: FrameType | None = None,
        gradients: Sequence[torch.Tensor | None] = (None,),
    ) -> torch.Tensor:
        """The one root itself, or with ``--create-graph`` the gradient that a leaf gets from these
        roots, with a graph of its own.

        Raises:
            RootError: when a root needs a gradient.
            CaptureError: when there is no such leaf, or its gradient does not come, or depends on
                nothing.
        """
        leaf, recorder = self._request.create_graph, self._recorder
        if leaf is None:
            (root,) = roots
            return root  # type: ignore[no-any-return]
        probe = Probe(roots, recorder, scopes)
        probe.require_memory()
        live = LiveGraph(probe, roots, gradients, recorder, None, scopes)
        node, output = named_place(leaf, live)
        end = probe.walked.nodes[node]
        tensor: Any = leaf_of(end)
        tensor = GradientEdge(end, output) if tensor is None else tensor
        seeds = [initial(root, seed) for root, seed in zip(roots, gradients, strict=True)]
        if any(seed is None for seed in seeds):
            raise RootError(
                "--create-graph needs a root of one element, or the program's own gradient for it",
                "name such a root with --root; --gradient is then fed in at the gradient of the "
                "leaf",
            )
        with (
            # The program's call may stand under no_grad.
            torch.enable_grad(),
            grads_preserved(),
            recorder.deriving(roots, frame, create_graph=True),
        ):
            try:
                (found,) = own_grad(roots, [tensor], seeds, create_graph=True)
            except Exception as error:  # torch's, or of a hook or a Function of the program
                let_pass(error)
                raise CaptureError(
                    f"no graph of the gradient of {leaf}: {described(error)}",
                    "look at the first pass: gradscope backward",
                ) from error
        return _usable(found, leaf, probe.graph, scopes)


def _usable(found: torch.Tensor | None, leaf: str, graph: Graph, scopes: Scopes) -> torch.Tensor:
    root = graph.roots[0].label or "root"
    name = f"∂{root}/∂{leaf}"
    if found is None:
        raise CaptureError(
            f"{leaf} gets no gradient", "why: gradscope explain, or gradscope doctor"
        )
    if not requires_grad(found):
        raise CaptureError(
            f"{name} depends on no leaf: the second derivative is 0 everywhere",
            "it is only worth a look where the root is not linear in that leaf",
        )
    if not scopes.names(found):
        scopes.add(name, found)
    return found


def look(
    recorder: Recorder | None, frame: FrameType, root: Any, request: Request, listener: Any = None
) -> Report:
    """Walk from ``root``, and answer a request about its graph.

    Args:
        recorder: what is known of the program; else the active recorder; else only names are known.
        frame: the caller, whose variables give names.
        root: a tensor that requires grad.
        request: what to look at, but for the root.
        listener: who has heard of the calls behind it, where the recorder does not know.

    Raises:
        RootError: when the root or the gradient does not fit.
        CaptureError: when the study needs calls that nobody has recorded.
    """
    # A recorder that was never started knows nothing, and answers every question so.
    recorder = recorder or Recorder.active or Recorder()
    with hidden():
        scopes = Scopes.of_frames(frames_from(frame, recorder.places))
        names = scopes.names(root) if isinstance(root, torch.Tensor) else []
        root = usable_root(root, names[0] if names else "the root", "root", recorder)
        return OwnLook(request, recorder, listener).take(root, scopes)


def _listener(recorder: Recorder, study: Study | None) -> Any:
    """Who has heard of the calls that a study needs; None where it needs none."""
    if study is None or not study.listener:
        return None
    kind = listener_of(study)
    found = next((one for one in recorder.listeners.all if isinstance(one, kind)), None)
    if found is None:
        raise CaptureError(
            f"{study.command} makes the calls behind a graph again, and nobody has recorded them",
            f"make the graph inside of gradscope.record({study.command}=True)",
        )
    return found
