"""The rule for whatever else is raised while backward is under way: by whom, and which forward line
and which registration lead there; and what came to an operation of forward that raised.

The program's own exception is shown as python shows it.  Errors that have a reading of their own
are in :mod:`gradscope.rules.errors`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from gradscope.model.observations import Failure, Raiser, RaiserKind
from gradscope.rules.facts import Facts, FindingDraft
from gradscope.words import first_line


class _RaiserWords(NamedTuple):
    """What is said of a raiser of one kind: who, why that ends the call, and what to do."""

    who: str
    why: str
    remedy: str


_WORDS: dict[RaiserKind, _RaiserWords] = {
    "Function": _RaiserWords(
        "Backward of {name}",
        "Torch runs the backward of a custom Function as it stands; what it raises ends the whole "
        "call, and the leaves behind it get no gradient.",
        "Fix it at the line that raised. Backward knows its ctx and the gradients it is given: "
        "what else it needs, forward has to keep, tensors with `ctx.save_for_backward`.",
    ),
    "hook": _RaiserWords(
        "The hook{name}",
        "Hooks run in the middle of backward; what one raises ends the whole call, and the leaves "
        "behind it get no gradient.",
        "Fix the hook at the line that raised, or take it away where it is registered.",
    ),
    "saved tensor": _RaiserWords(
        "What brings back a saved tensor of {name}",
        "Backward of this operation needs what it had saved. A hook of saved_tensors_hooks, or a "
        "checkpoint, which computes it again, has to bring it back and could not.",
        "Fix what runs there: for a checkpoint, the function has to do the second time what it "
        "did the first time.",
    ),
    "operation": _RaiserWords(
        "Backward of {name}",
        "Torch refuses here what forward could do: the words above say why.",
        "Change this forward call, or what goes into it, so that its backward is possible.",
    ),
}
_CALL = _RaiserWords(
    "The backward call",
    "Torch refuses what the call is given, or what it asks for: the words above say why.",
    "Change this call as they say.",
)

_UNDEFINED = _RaiserWords(
    "Backward of {name}",
    "Torch calls the static method `backward` of the class. This class has none: it may stand "
    "inside of another method, or go by another name.",
    "Define `backward` in the class itself, a @staticmethod at the level of `forward`.",
)

_LOST = _RaiserWords(
    "The backward call",
    "The ranks wait for one another in backward. One that this rank waited for has ended, or makes "
    "other calls.",
    "Look at what the other ranks say: the one that ended first is the cause.",
)

_NAMED = ("Function", "hook")
"""Kinds of raisers that have a name in the program."""


def backward_raises(facts: Facts) -> Iterable[FindingDraft]:
    """GS410: something raised in the middle of a backward call."""
    failure = facts.seen.failure
    if failure is None or not failure.in_backward:
        return
    raiser = failure.raiser
    words = _CALL if raiser is None else _WORDS[raiser.kind]
    if raiser is None or raiser.kind == "operation":
        words = _LOST if facts.has_lost_a_rank else words
    if raiser is not None and raiser.kind == "Function" and raiser.registered is not None:
        words = _UNDEFINED
    who = words.who.format(name="" if raiser is None else _named(facts, raiser))
    then = "" if failure.ended else ", and the program went on"
    node = None if raiser is None else raiser.node
    yield facts.finding(
        "error" if failure.ended else "information",
        f"{who} raised {failure.type}{then}.",
        node,
        location=facts.location(_place(failure, raiser)),
        subject=raiser.name if raiser is not None and raiser.kind in _NAMED else "",
        evidence=tuple(_evidence(facts, failure, raiser)),
        why=words.why,
        remedy=words.remedy,
        fails=True,
    )


def forward_raises(facts: Facts) -> Iterable[FindingDraft]:
    """GS412: an operation of forward raised the exception that ended the program."""
    failure = facts.seen.failure
    if failure is None or not failure.got or not failure.ended or failure.in_backward:
        return
    call = facts.expression(failure.origin) or "an operation"
    yield facts.finding(
        "information",
        f"{call} raised {failure.type}, by which the program ended.",
        location=facts.location(failure.origin),
        evidence=(*_evidence(facts, failure, None), failure.got),
        why="Torch refuses what came to this operation: the words above say why.",
        remedy="Compare the shapes above with those that the operation takes. `gradscope trace` "
        "draws the graph of what came to it.",
        fails=True,
    )


def _named(facts: Facts, raiser: Raiser) -> str:
    """The name of a Function or a hook; an operation in the program's words."""
    if raiser.kind == "hook":
        return f", {raiser.name}," if raiser.name.startswith("a ") else f" {raiser.name}".rstrip()
    if raiser.kind in _NAMED:
        return raiser.name or "of the program"
    return facts.expression(raiser.made) or raiser.name or "an operation"


def _place(failure: Failure, raiser: Raiser | None) -> int | None:
    """Where to look: a hook where it was registered, all else where forward made the node."""
    if raiser is None:
        return failure.origin
    places = (raiser.registered, raiser.made, raiser.raised, failure.origin)
    return next((place for place in places if place is not None), None)


def _evidence(facts: Facts, failure: Failure, raiser: Raiser | None) -> Iterator[str]:
    yield f"{failure.type}: {first_line(failure.message)[:300]}"
    if raiser is None:
        return
    raised = facts.location(raiser.raised)
    if raised is not None:
        what = facts.expression(raiser.raised)
        yield f"raised at {raised}" + (f" by {what}" if what else "")
    if raiser.kind == "Function" and raiser.registered is not None:
        used = facts.location(raiser.made)
        yield (
            f"no `backward` is in the class, and {facts.expression(raiser.registered)} is here"
            + (f"; applied at {used}" if used else "")
        )
    if raiser.kind != "hook":
        return
    made = facts.location(raiser.made)
    if made is not None:
        yield f"it gets the gradient of {facts.expression(raiser.made)} at {made}"
    elif raiser.node in facts.leaf_names:
        yield f"it gets the gradient of {facts.leaf_names[raiser.node]}"
