"""What was out of order in a loop, and what is said of it: a table, by kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from gradscope.model.loop_observations import Disorder, OrderKind
from gradscope.rules.facts import Facts, FindingDraft
from gradscope.words import count

FEWEST = 2
"""Times that a thing is seen out of order, before it is called a mistake."""

FEWEST_IDLE = 5
"""Backward calls for an optimizer that does not step, before that is called a mistake."""


class _Said(NamedTuple):
    """What is said of one, with its expression, place and numbers filled in."""

    message: str
    evidence: str
    why: str
    remedy: str
    otherwise: str = ""
    """What ``{beside}`` is where its place is not known."""
    fewest: int = FEWEST


_CLOSURE = (
    "LBFGS calls it several times in a step, with other parameters each time, and needs the loss "
    "and the gradients at each: where to go next, how far, and whether to stop depends on them."
)

_FIRST = _Said(
    "{this} comes before the step of its optimizer.",
    "{times} before {beside}",
    "The first value of the schedule is skipped, and every step is made with the learning rate of "
    "the next one.",
    "Call `optimizer.step()` first, and `scheduler.step()` after it.",
    "any step",
)

_WORDS: dict[str, _Said] = {
    "clip unused": _Said(
        "{this} clips no gradient that a step will use.",
        "{times}, and each time the gradients were none, or had been used by {beside} before",
        "It changes what is in .grad at that moment. Before backward that is empty, and after the "
        "step it is of no use any more: the step itself is made with gradients of any size.",
        "Clip between `loss.backward()` and `optimizer.step()`.",
        "a step",
    ),
    "clip empty": _Said(
        "{this} clips nothing: it gets no parameters.",
        "{times} it was given a generator that had been gone through before, which is empty then",
        "Whoever goes through a generator, such as `model.parameters()`, uses it up: an optimizer "
        "made of it, or the clipping of the step before. All gradients stay as large as they are.",
        "Make a list of it, `parameters = list(model.parameters())`, or call `model.parameters()` "
        "at each place.",
    ),
    "clip scaled": _Said(
        "{this} clips gradients that are still multiplied by the scale of the GradScaler.",
        "{times}; they are divided only at {beside}",
        "The loss was multiplied by 65,536 or so, and the gradients with it, so the limit is "
        "smaller by that factor than it says: next to nothing is left of every gradient.",
        "Call `scaler.unscale_(optimizer)` after backward and before clipping.",
        "scaler.step",
        fewest=1,
    ),
    "stale graph": _Said(
        "The optimizer steps between a forward pass and its backward.",
        "{parameters} changed here, and then {beside} went through a graph made with the values "
        "from before; {times}",
        "The gradient belongs to the old values of the parameters, not to the present ones; the "
        "step itself used the gradient of the iteration before, or none.",
        "Call `loss.backward()` after the forward pass and before `optimizer.step()`; compute a "
        "new loss for every step.",
        "backward",
    ),
    "stale part": _Said(
        "{this} is older than the steps whose backward goes through it.",
        "{beside} went through it again {times} after {parameters} that it was computed from had "
        "changed",
        "What the steps change does not reach forward: the loss sees the values that were computed "
        "before them, and the gradient belongs to parameters that are no more. `retain_graph=True` "
        "keeps torch from saying so.",
        "Compute it anew in every step, before the loss; or, where it is to stay as it is, under "
        "torch.no_grad().",
        "backward",
    ),
    "step alone": _Said(
        "The optimizer steps, and nothing has computed a gradient: backward is never called.",
        "{steps}, and .grad of all {parameters} was None",
        "A step skips parameters without a gradient, so nothing is learned.",
        "Call `loss.backward()` before `optimizer.step()`.",
    ),
    "step again": _Said(
        "The optimizer steps a second time with the same gradients.",
        "{times}; nothing has changed the gradients of {parameters} since {beside}",
        "The step is larger than the learning rate says: it goes along a gradient once more that "
        "belongs to where the parameters were before.",
        "Call `optimizer.step()` once for each gradient; delete the other call.",
        "the step before",
    ),
    "step shared": _Said(
        "Two optimizers step the same parameters with the same gradients.",
        "{times}; nothing has changed the gradients of {parameters} since {beside}",
        "What two optimizers hold is changed twice for one backward call, and each keeps a "
        "momentum of its own, which knows nothing of the other's steps.",
        "Give each optimizer other parameters; or call backward again before this step.",
        "the other step",
    ),
    "scheduler first": _FIRST,
    # A training that is resumed calls it early, and never again from that line.
    "scheduler early": _FIRST._replace(fewest=1),
    "optimizer idle": _Said(
        "{this} brings gradients to parameters whose optimizer never steps.",
        "{calls} for {parameters} that only {beside} holds; it has made no step, and others have",
        "A step changes what its own optimizer holds. These parameters stay as they are.",
        "Call `step()` of that optimizer after this backward; or leave it out, and the backward "
        "with it.",
        "an optimizer",
        fewest=FEWEST_IDLE,
    ),
    "closure alone": _Said(
        "The function given to {this} brings no gradient: it does not call backward.",
        "{steps} of LBFGS, and .grad of its parameters was the same after each call as before",
        _CLOSURE,
        "Do all of it in the function: `zero_grad`, the forward pass, `loss.backward()`, and "
        "`return loss`.",
    ),
    "closure stale": _Said(
        "The function given to {this} returns the same value each time.",
        "{steps} of LBFGS, in which it was called up to {each}, each with other parameters",
        _CLOSURE,
        "Compute the loss in the function, and return that one: `return loss`.",
    ),
}


def out_of_order(*kinds: OrderKind) -> Callable[[Facts], Iterable[FindingDraft]]:
    """The rule about these."""

    def check(facts: Facts) -> Iterable[FindingDraft]:
        for kind in kinds:
            for entry in facts.seen.disorders:
                if (
                    entry.kind == kind
                    and entry.times >= _WORDS[kind].fewest
                    and _counts(facts, entry)
                ):
                    yield _finding(facts, entry)

    return check


def _counts(facts: Facts, entry: Disorder) -> bool:
    """Whether it is not, by how often it was in order, as it has to be."""
    match entry.kind:
        case "clip unused" | "scheduler first" | "closure alone" | "closure stale":
            return not entry.fine
        case "scheduler early":
            return bool(entry.fine)
        case "optimizer idle":
            # Its turn may come later.
            return not entry.fine or facts.is_over
    return True


def _finding(facts: Facts, entry: Disorder) -> FindingDraft:
    words = _WORDS[entry.kind]
    named = {
        "this": facts.expression(entry.origin) or "this",
        "beside": placed(facts, entry.beside, words.otherwise),
        "times": count(entry.times, "time"),
        "steps": count(entry.times, "step"),
        "calls": count(entry.times, "backward call"),
        "each": count(entry.parameters, "time"),
        "parameters": count(entry.parameters, "parameter"),
    }
    return facts.warning(
        words.message.format(**named),
        location=facts.location(entry.origin),
        evidence=words.evidence.format(**named),
        why=words.why,
        remedy=words.remedy,
    )


def placed(facts: Facts, origin: int | None, otherwise: str) -> str:
    """``optimizer.step()`` at train.py:7."""
    place = facts.location(origin)
    if place is None:
        return otherwise
    return f"{facts.expression(origin)} at {place}".strip()
