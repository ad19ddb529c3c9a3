"""A look at one tensor of a running program, and reports from files."""

from __future__ import annotations

import sys
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradscope.api.keywords import public
from gradscope.api.report import Report
from gradscope.filesystem import here
from gradscope.formats import MAX_SIZE
from gradscope.model import storage
from gradscope.model.request import Check, DependsStudy, Explain, MemoryStudy, Request, SplitStudy
from gradscope.rules import diagnosed, find_rule

if TYPE_CHECKING:
    import torch

    from gradscope.analyses.doctor.listener import DoctorListener
    from gradscope.model.request import Study
    from gradscope.recording.listener import Listener
    from gradscope.recording.recorder import Recorder


class Looks:
    """What can be asked of a tensor, here with all that a recorder and a tape know."""

    _recorder: Recorder | None = None
    _tape: Listener | None = None
    _ignored: Collection[str] = ()
    _folder = ""

    def _heard(self) -> DoctorListener | None:
        """Who has seen how it was made."""
        return None

    def _look(
        self,
        root: torch.Tensor,
        gradient: tuple[Any, ...] | None = None,
        study: Study | None = None,
        listener: Listener | None = None,
        **kept: Any,
    ) -> Report:
        """A look, with a gradient where there is one; ``kept`` are further fields of a request."""
        from gradscope.running.own_look import look

        has_gradient, (given,) = gradient is not None, gradient or (None,)
        asked = Request(has_gradient, gradient=given, study=study, **kept)
        # Frames of ours are passed over in the search for the caller's variables.
        return Report.of(look(self._recorder, sys._getframe(1), root, asked, listener))

    @public
    def trace(self, root: torch.Tensor, *, values: bool = False, saved: bool = False) -> Report:
        """The graph that ``root.backward()`` would walk.

        Args:
            root: any tensor that requires grad.
            values: keep the values of all tensors, not only of small ones.
            saved: keep what each node saved for backward.

        Raises:
            RootError: when ``root`` carries no gradient history.
        """
        return self._look(root, values=values, saved=saved)

    @public
    def backward(
        self,
        root: torch.Tensor,
        gradient: Any = None,
        *,
        values: bool = False,
        saved: bool = False,
        histograms: bool = False,
        by: str | None = None,
    ) -> Report:
        """The graph, and the gradient that flows along each edge when ``gradient`` is fed in at
        ``root``.

        Nothing is accumulated into ``.grad`` and no buffer is freed.  With ``by`` the gradient is
        also taken apart, and the report's ``split`` holds what each piece brings to each leaf.

        Args:
            root: any tensor that requires grad.
            gradient: a tensor or nested list of the root's shape, or text: ``"ones"``, ``"zeros"``,
                ``"randn"``, ``"onehot:0,2"``, ``"@FILE.npy"``, or an expression of the caller's
                variables; may be left out for a root of one element, where it is 1.
            values: keep the values of all tensors, not only of small ones.
            saved: keep what each node saved for backward.
            histograms: count the elements of each gradient by size, for pages and tables.
            by: what the pieces are: ``"term"``, the terms of a loss; ``"mse, kl"``, what goes
                through these tensors; ``"sample"`` or ``"sample:logits"``, rows of a batch;
                ``"output"`` or ``"output:4"``, rows of the Jacobian.

        Raises:
            RootError: when ``root`` carries no gradient history, ``gradient`` does not fit it, or
                ``by`` does not.
            CaptureError: when backward fails, an earlier call has freed the graph, ``by`` names no
                tensor of it, or a node on the way of a piece cannot be called.
        """
        study = None if by is None else SplitStudy.of(by)
        return self._look(
            root, (gradient,), study, values=values, saved=saved, histograms=histograms
        )

    @public
    def explain(
        self,
        root: torch.Tensor,
        leaf: str | None = None,
        *,
        gradient: Any = None,
        node: int | None = None,
        jacobian: bool = False,
        all: bool = False,
    ) -> Report:
        """The chain rule in numbers, from the root to a leaf.

        For every step the derivative of the operation, upstream times local, and every sum; for
        every leaf the paths to it.  The report's ``explanation`` holds that, and
        :meth:`Report.show` tells it.

        Args:
            root: any tensor that requires grad.
            leaf: the name of a leaf to explain, or of a tensor on the way to the leaves, ``"#3"``
                for what node 3 made; by default all leaves of a small graph, of a large one the
                leaf with the longest way.
            gradient: what is fed in at the root, as for :func:`backward`.
            node: explain only what this node does, by its number.
            jacobian: with the whole Jacobian of the root by the leaves, at most 24 rows and
                columns; needs no gradient.
            all: every leaf, step and path; leave nothing out.

        Raises:
            TypeError: when both ``leaf`` and ``node`` are given.
            RootError: when ``root`` carries no gradient history, ``gradient`` does not fit it, or
                there is no such node.
            CaptureError: when the graph has no such leaf (naming the nearest), when the Jacobian is
                too large to be read, or when backward fails.
        """
        if leaf is not None and node is not None:
            raise TypeError("explain() takes a leaf or a node, not both")
        asked = Explain(leaf, node, jacobian, all)
        return self._look(root, (gradient,), asked)

    @public
    def check(
        self,
        root: torch.Tensor,
        *,
        gradient: Any = None,
        node: int | None = None,
        every_call: bool = False,
    ) -> Report:
        """Every derivative compared with finite differences.

        Makes the calls behind the graph again in float64, each alone, and compares what backward
        gives with differences of forward; then the gradients of all leaves with differences of all
        calls together, in which what has no history, as after ``detach()`` or ``item()``, is held
        fixed.  That needs the calls, which a graph does not hold: they are recorded inside
        of ``record(check=True)``.  The report's ``checks`` holds the verdicts.

        Args:
            root: a tensor that was made in such a block.
            gradient: what is fed in at the root, as for :func:`backward`.
            node: check only the call that made this node, by its number.
            every_call: check every call, whatever its size, not only one at each line.

        Raises:
            RootError: when ``root`` carries no gradient history, ``gradient`` does not fit it, or
                there is no such node.
            CaptureError: when the calls were not recorded, or backward fails.
        """
        asked = Check(node=node, everything=every_call)
        return self._look(root, (gradient,), asked, self._tape)

    @public
    def memory(self, root: torch.Tensor) -> Report:
        """What autograd keeps alive for backward through this graph, by line, module, op and dtype.

        Counts the memory of all saved tensors in bytes, each storage once; changes none of it.  The
        report's ``memory`` holds the count.

        Args:
            root: any tensor that requires grad.

        Raises:
            RootError: when ``root`` carries no gradient history.
            CaptureError: when an earlier backward call has freed the graph.
        """
        return self._look(root, None, MemoryStudy())

    @public
    def depends(
        self,
        root: torch.Tensor,
        on: str,
        *,
        of: str | None = None,
        axis: int | tuple[int, int] | None = None,
    ) -> Report:
        """Which elements of one tensor depend on which of another.

        A gradient that is not zero at one index only goes from the one to the other, for each index
        along an axis.  The report's ``dependence`` holds the norms of what arrives at each index.

        Args:
            root: any tensor that requires grad.
            on: the name of the tensor that may be depended on: a variable, a leaf, or ``"#3"`` for
                what node 3 made.
            of: the name of the one that depends on it; by default ``root`` itself.
            axis: the axis of both, or one of each; by default the first of one size in both.

        Raises:
            TypeError: when ``axis`` is neither a number nor two.
            RootError: when ``root`` carries no gradient history, or the tensors have no such axis.
            CaptureError: when an earlier call has freed the graph, it has no such tensor, or a node
                on the way cannot be called.
        """
        axes = () if axis is None else axis if isinstance(axis, tuple) else (axis,)
        if len(axes) > 2 or not all(type(one) is int for one in axes):
            raise TypeError(f"depends() takes one axis, or a tuple of two, not {axis!r}")
        return self._look(root, None, DependsStudy(on, of, axes))

    @public
    def doctor(self, root: torch.Tensor, *, ignore: Collection[str] = ()) -> Report:
        """What is wrong with a graph that is there, and with the gradient that flows through it.

        Nothing is accumulated into ``.grad`` and no buffer is freed.  The rules apply that need no
        more than the graph, its gradients and its leaves.  ``notes`` say what is left out: how the
        graph was made, the optimizer and the training loop are seen by ``record(doctor=True)``.

        Args:
            root: a tensor of one element that requires grad, such as a loss.
            ignore: rules that stay silent, by code (``"GS205"``) or name (``"zero-gradient"``).

        Returns:
            A report with ``findings``, worst first.

        Raises:
            RootError: when ``root`` carries no gradient history, or has more than one element.
            CaptureError: when an earlier backward call has freed the graph.
            TypeError: when ``ignore`` is no collection of texts.
            GradscopeError: when ``ignore`` names no rule.
        """
        from gradscope.running.built import examine

        ignored = (*self._ignored, *codes(ignore))
        found = examine(self._recorder, sys._getframe(1), root, self._heard())
        return Report.of(diagnosed(found, ignored, self._folder or here()))


def codes(ignore: Collection[str]) -> tuple[str, ...]:
    """The codes of the rules that are named.

    Raises:
        TypeError: it is one text, or something that is no text is among them.
        GradscopeError: one of them is no rule.
    """
    if isinstance(ignore, str):
        raise TypeError(f"ignore takes several rules: ignore=[{ignore!r}]")
    if not (isinstance(ignore, Collection) and all(isinstance(word, str) for word in ignore)):
        raise TypeError(f"ignore takes codes or names of rules, not {ignore!r}")
    return tuple(find_rule(word, source="ignore").code for word in ignore)


_BARE = Looks()
trace, backward, explain = _BARE.trace, _BARE.backward, _BARE.explain
check, memory, doctor = _BARE.check, _BARE.memory, _BARE.doctor
depends = _BARE.depends


@public
def load(path: str | Path, max_size: int | None = MAX_SIZE) -> Report:
    """A report saved as .json or .json.gz.

    Args:
        path: the file.
        max_size: bytes of JSON, unpacked, that are read at most; None is no limit.

    Raises:
        ValueError: when ``max_size`` is below 1.
        ReportError: when the file is not a report that this version reads, or is larger.
    """
    return Report.of(storage.load(Path(path), max_size))
