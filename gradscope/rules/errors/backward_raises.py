"""GS410 backward-raises

An exception ends a backward call: a hook or the backward of a custom Function raises it, or what
brings back a saved tensor; or torch refuses what these return, or an operation.

## How it is recognised

The traceback tells which code ran, and the nodes that had run tell whose turn it was. Named are
the line that registered the hook and the tensor whose gradient it gets; the forward line of the
Function or the operation; and the line that raised. Of a Function that defines no `backward`, the
line is the `def` that comes nearest to one, else that of `forward`; where a first derivative has
none of its own, that of the operation. Where the program catches it, it is information.

## A program that has it, healed

```diff
 import torch

-norms = {}
+norms = {"total": 0.0}
 x = torch.randn(3, requires_grad=True)
 y = x.exp()
 y.register_hook(lambda grad: norms.update(total=norms["total"] + grad.norm()))
 y.sum().backward()
```

## When to ignore it

A hook that ends backward on purpose.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from gradscope.model.observations import Failure, Location, Raiser, RaiserKind
from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.rule import Rule
from gradscope.words import first_line

_MISSING = re.compile(r"derivative for '?(?:aten::)?(\w+?)(?:_backward)?'? is not")


class BackwardRaises(Rule):
    code = "GS410"
    name = "backward-raises"

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        failure = facts.seen.failure
        if failure is None or not failure.in_backward:
            return
        raiser = failure.raiser
        words, name = _words(facts, failure), _named(facts, failure)
        guilty = _once_only(facts, failure.message) if words is _TWICE else None
        node = guilty if guilty is not None or raiser is None else raiser.node
        then = "" if failure.ended else ", and the program went on"
        yield facts.finding(
            "error" if failure.ended else "information",
            f"{words.who.format(name=name)} raised {failure.type}{then}.",
            node,
            location=_location(facts, failure, guilty),
            subject=raiser.name
            if raiser is not None and raiser.kind in ("Function", "hook")
            else "",
            evidence=(
                f"{failure.type}: {first_line(failure.message)[:300]}",
                *([] if raiser is None else _evidence(facts, raiser)),
            ),
            why=words.why,
            remedy=words.remedy,
            fails=True,
        )


class _RaiserWords(NamedTuple):
    """What is said of a raiser of one kind: who, why that ends the call, and what to do."""

    who: str
    why: str
    remedy: str


_WORDS: dict[RaiserKind, _RaiserWords] = {
    "Function": _RaiserWords(
        "Backward of {name}",
        "Torch runs the backward of a custom Function as it stands; what it raises ends the call.",
        "Fix it at the line that raised. Backward knows its ctx and the gradients it is given: "
        "what else it needs, forward has to keep, tensors with `ctx.save_for_backward`; what it "
        "computes has history only under `torch.enable_grad()`.",
    ),
    "hook": _RaiserWords(
        "The hook{name}",
        "Hooks run in the middle of backward; what one raises ends the whole call.",
        "Fix the hook at the line that raised, or take it away where it is registered.",
    ),
    "saved tensor": _RaiserWords(
        "What brings back a saved tensor of {name}",
        "Backward of this operation needs what it had saved. A hook of saved_tensors_hooks, or a "
        "checkpoint, which computes it again, has to bring it back and could not.",
        "Fix what runs there: a checkpoint's function has to do the same both times.",
    ),
    "operation": _RaiserWords(
        "Backward of {name}",
        "Torch refuses here what forward could do: the words above say why.",
        "Change this forward call, or what goes into it, so that its backward is possible.",
    ),
}
_NO_LINE = _RaiserWords(
    "Backward of {name}",
    "What is raised there ends the whole call: the words above say why.",
    "Change the Function as they say, or what is given to it here: backward returns for each "
    "argument of forward a tensor of its shape, or None.",
)
_RETURNED = _RaiserWords(
    "Torch, given what the hook returned,",
    "It is not what such a hook may return: the words above say why.",
    "Return nothing from a hook that only looks, or that runs after accumulation, else a tensor of "
    "the same shape, dtype and device; a module's hook returns a tuple, `(grad,)`.",
)
_TWICE = _RaiserWords(
    "Backward through a gradient",
    "A gradient is differentiated (create_graph=True) where torch has no second derivative.",
    "Use what torch can differentiate twice, such as basic operations; in the backward of a custom "
    "Function, too, without once_differentiable and on saved tensors.",
)
_CALL = _RaiserWords(
    "The backward call",
    "Torch refuses what the call is given or asks for: the words above say why.",
    "Change this call as they say.",
)
_LOST = _RaiserWords(
    "The backward call",
    "The ranks wait for one another in backward. One has ended, or makes other calls.",
    "Look at what the other ranks say: the one that ended first is the cause.",
)


def _words(facts: Facts, failure: Failure) -> _RaiserWords:
    raiser = failure.raiser
    if facts.has_lost_a_rank and (raiser is None or raiser.kind == "operation"):
        return _LOST
    if raiser is None:
        return _CALL
    if raiser.raised is not None:
        return _WORDS[raiser.kind]
    if _is_second(facts, failure.message, raiser):
        return _TWICE
    # No line of the program raised.
    return {"Function": _NO_LINE, "hook": _RETURNED}.get(raiser.kind, _WORDS[raiser.kind])


def _is_second(facts: Facts, text: str, raiser: Raiser) -> bool:
    """Whether a derivative is missing, and it is that of a gradient."""
    if "is not implemented" not in text:
        return "differentiate twice" in text or "is not twice differentiable" in text
    made = raiser.node is not None and facts.graph.nodes[raiser.node].backward_made
    return "_backward" in text or made


def _once_only(facts: Facts, text: str) -> int | None:
    """The node of the operation that torch names, which has no second derivative."""
    name = _MISSING.search(text)
    wanted = name[1].replace("_", "").lower()[:8] if name else ""
    found = [node for node in facts.graph.nodes if node.short_op.lower().startswith(wanted)]
    # Cdist, not the CdistBackward that the first derivative left in the graph.
    return min(found, key=lambda node: len(node.short_op)).id if wanted and found else None


def _named(facts: Facts, failure: Failure) -> str:
    """The name of a Function or a hook; an operation in the program's words, or in torch's."""
    raiser = failure.raiser
    if raiser is None:
        return ""
    if raiser.kind == "hook":
        return f", {raiser.name}," if raiser.name.startswith("a ") else f" {raiser.name}".rstrip()
    if raiser.kind == "Function":
        return raiser.name or "of the program"
    missing = _MISSING.search(failure.message) if raiser.name == "NotImplemented" else None
    name = missing[1] if missing else raiser.name
    return facts.expression(raiser.made) or name or "an operation"


def _location(facts: Facts, failure: Failure, guilty: int | None) -> Location | None:
    """Where to look: a hook where it was registered, all else where forward made the node."""
    raiser, made = failure.raiser, None if guilty is None else facts.graph.nodes[guilty].origin
    places = [made, *((raiser.registered, raiser.made, raiser.raised) if raiser else ())]
    return next(filter(None, map(facts.location, places)), facts.location(failure.origin))


def _evidence(facts: Facts, raiser: Raiser) -> Iterable[str]:
    """Which line raised, and of what the hook or the Function is."""
    raised, made = facts.location(raiser.raised), facts.location(raiser.made)
    if raised is not None:
        yield " by ".join(filter(None, (f"raised at {raised}", facts.expression(raiser.raised))))
    leaf = "" if raiser.node is None else facts.leaf_names.get(raiser.node, "")
    whose = leaf if made is None else f"{facts.expression(raiser.made)} at {made}"
    if raiser.kind == "hook" and whose:
        yield f"it gets the gradient of {whose}"
