"""The rule about a backward that autograd does not know of."""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.diagnose._facts import Facts, FindingDraft


def backward_not_called(facts: Facts) -> Iterable[FindingDraft]:
    """GS411: a class of modules defines ``backward``, and autograd never calls it."""
    for found in facts.seen.uncalled_backwards:
        yield facts.finding(
            "warning",
            f"{found.name}.backward is never called: {found.name} is a Module, and of a Module "
            "autograd calls forward only.",
            location=facts.location(found.origin),
            subject=found.module or found.name,
            evidence=(
                f"{found.module or found.name} ran in the forward pass; backward went through the "
                "operations of its forward as they are",
            ),
            why="Only an autograd.Function brings a backward of its own. The gradient passes here "
            "as if the method were not there.",
            remedy="Write a torch.autograd.Function with a static forward and backward, and call "
            "its `apply` in this forward. To scale or turn a gradient round without one: "
            "`x * -s + (x * (1 + s)).detach()`.",
        )
