"""The assertions of the fixture ``gradscope``, and what the doctor found in a test."""

from __future__ import annotations

from collections.abc import Collection
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from gradscope.api import Finding, Run, diff
from gradscope.errors import GradscopeError, NoGraph
from gradscope.rules import at_least
from gradscope.running.built import reached
from gradscope.testing.told import Examined
from gradscope.words import count, listed, nearest

if TYPE_CHECKING:
    import torch
    from torch import nn


class Gradients:
    """Assertions on the graph of a loss; none of them accumulates into ``.grad`` or frees a buffer.

    Args:
        run: the recorded test.
        folder: of the test, in which saved reports are looked for.
        update: write them anew.
    """

    def __init__(self, run: Run, folder: Path, update: bool) -> None:
        self._run = run
        self._folder = folder
        self._update = update

    def assert_healthy(self, loss: torch.Tensor, *, ignore: Collection[str] = ()) -> None:
        """Nothing is wrong with the gradients of a loss, as far as its graph shows.

        Args:
            loss: a tensor of one element that requires grad, before ``backward``.
            ignore: rules that stay silent, by code or name.

        Raises:
            AssertionError: with all findings that are at least warnings.
            GradscopeError: when the loss has no graph, or ``ignore`` names no rule.
        """
        __tracebackhide__ = True
        found = self._run.doctor(loss, ignore=ignore).findings
        told = [str(one) for one in found if one.severity != "information"]
        if told:
            raise AssertionError("\n\n".join(told))

    def assert_reaches(
        self, loss: torch.Tensor, model: nn.Module, *, except_: Collection[str] = ()
    ) -> None:
        """Backward from a loss reaches every parameter of a model that requires grad.

        Args:
            loss: a tensor that requires grad, before ``backward``.
            model: whose parameters are asked for.
            except_: names of parameters that need not be reached, with ``*`` and ``?``.

        Raises:
            AssertionError: with the names of those that are not, and what cuts them off where that
                was seen.
            GradscopeError: when the loss has no graph.
            TypeError: when ``except_`` is one text.
            ValueError: when a name in it fits no parameter.
        """
        __tracebackhide__ = True
        if isinstance(except_, str):
            raise TypeError(f"except_ takes several names: except_=[{except_!r}]")
        names = {name: one for name, one in model.named_parameters() if one.requires_grad}
        for pattern in except_:
            if not any(fnmatchcase(name, pattern) for name in names):
                close = nearest(pattern, names)
                raise ValueError(
                    f"except_ names no parameter that requires grad: {pattern!r}"
                    + (f"; did you mean {close[0]!r}?" if close else "")
                )
        there = {id(leaf) for leaf in reached(loss)}
        lost = [
            name
            for name, one in names.items()
            if id(one) not in there and not any(fnmatchcase(name, each) for each in except_)
        ]
        if lost:
            what = f"{count(len(lost), 'parameter')} of {type(model).__name__}"
            message = f"backward from the loss does not reach {what}: {listed(lost, 8)}"
            raise AssertionError("\n\n".join([message, *self._cuts(loss)]))

    def _cuts(self, loss: torch.Tensor) -> list[str]:
        try:
            found = self._run.doctor(loss).findings
        except GradscopeError:
            return []
        return [str(one) for one in found if one.rule.startswith("GS3")]

    def assert_same(
        self,
        loss: torch.Tensor,
        saved_report: str | Path,
        *,
        rtol: float = 1e-5,
        atol: float = 1e-8,
    ) -> None:
        """The graph of a loss and its gradients are those of a saved report.

        Args:
            loss: a tensor of one element that requires grad, before ``backward``.
            saved_report: a .json or .json.gz file, from the folder of the test on; written with
                ``pytest --gradscope-update``.
            rtol: allow a difference of this part of the larger norm.
            atol: and of this much in any case.

        Raises:
            AssertionError: with what differs; or when there is no such file.
            ReportError: when the file holds no report that this version reads.
        """
        __tracebackhide__ = True
        file = self._folder / saved_report
        now = self._run.backward(loss)
        if self._update:
            now.save(file)
            return
        if not file.exists():
            raise AssertionError(
                f"there is no {file} to compare with; write it: pytest --gradscope-update"
            )
        found = diff(str(file), now, rtol=rtol, atol=atol)
        if found.verdict not in ("identical", "equal"):
            again = "pytest --gradscope-update takes what is there now"
            raise AssertionError(f"A is {saved_report}, B this test\n{found}\n{again}")


def examined(run: Run) -> Examined | None:
    """What was found; None where the test made no backward call."""
    try:
        report = run.report()
    except NoGraph:
        return None
    except GradscopeError as error:
        return Examined(problem=error.what)
    seen = report.observations
    if seen is None or not seen.calls:
        return None
    findings = [one for one in report.findings if one.severity != "information"]
    return Examined(
        calls=seen.calls,
        findings=tuple(map(_line, findings)),
        text="\n\n".join(map(str, report.findings)),
        is_failure=at_least(findings, "warning"),
    )


def _line(finding: Finding) -> str:
    place = f"{finding.location}: " if finding.location else ""
    return f"{place}{finding.rule} {finding.message}"
