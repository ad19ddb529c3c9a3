"""Rules that explain what torch said when backward, or an operation before it, failed.

The program's own exception is shown as python shows it; these findings add the lines it is about.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from gradscope.model.observations import Change, Failure, Freed, Raiser
from gradscope.rules.facts import Facts, FindingDraft, elements
from gradscope.rules.questions.missing import failed_without_history
from gradscope.rules.questions.readings import (
    FUNCTIONS,
    HOOKS,
    LEAVES,
    NONSCALAR,
    RESHAPED,
    SCALER,
    SHAPES,
    TWICE,
    ErrorReading,
    explained,
    read,
)
from gradscope.words import added_up, count, listed, misfit

_FREED = "backward through the graph a second time"
_CHANGED = "modified by an inplace operation"
_OWN_FUNCTION = re.compile(
    r"function (\w+?)(?:Backward)? returned an (?:incorrect|invalid)"
    r"|^(\w+?)(?:Backward)?: expected|(\w+?)Backward\S* returned"
)


def saved_tensor_changed(facts: Facts) -> Iterable[FindingDraft]:
    """GS401: a tensor changed in place after an operation had saved it for backward."""
    places: dict[tuple[int | None, int | None], list[Change]] = {}
    for change in facts.seen.changes:
        if not change.silent:
            saver = facts.graph.nodes[change.node].origin
            places.setdefault((change.origin, saver), []).append(change)
    by_line: dict[int | None, list[Change]] = {}
    for (origin, _), changes in places.items():
        by_line.setdefault(origin, []).extend(changes)
    for origin, changes in by_line.items():
        yield _changed(facts, origin, changes)
    failure = facts.seen.failure
    if failure is not None and _CHANGED in failure.message and not by_line:
        yield explained(
            facts,
            failure,
            ErrorReading(
                "",
                "A tensor was changed in place after an operation had saved it for backward.",
                "Backward needs it as it was.",
                "Use out-of-place operations (`x = x + y` for `x += y`), or clone it first.",
            ),
        )


def _changed(facts: Facts, origin: int | None, changes: list[Change]) -> FindingDraft:
    first = changes[0]
    name, _, own = first.function.partition(": ")
    what, saver = facts.expression(origin) or name, facts.words(first.node)
    places = [facts.location(facts.graph.nodes[change.node].origin) for change in changes]
    saved = listed(str(place) for place in places if place is not None)
    return facts.finding(
        "error",
        f"{what} changes {own}, which {saver} had saved for backward."
        if own
        else f"{what} changes a tensor in place that {saver} had saved for backward."
        if what
        else f"A tensor that {saver} had saved for backward is changed in place.",
        first.node,
        location=facts.location(origin),
        evidence=(
            f"{facts.op(first.node)} saved it as {first.slot}" + (f" at {saved}" if saved else ""),
            f"changed by {name or 'a call that was not seen'}",
        ),
        fails=True,
        why="Backward of that operation needs the tensor as it was, and torch refuses to go on "
        "with another.",
        remedy="Use the out-of-place operation (`x = x + y` for `x += y`, `inplace=False`), clone "
        "the tensor first, or move the change (an optimizer's step, too) behind backward.",
    )


def freed_graph(facts: Facts) -> Iterable[FindingDraft]:
    """GS402: backward through a graph whose saved tensors an earlier call has freed."""
    failure = facts.seen.failure
    if failure is None or _FREED not in failure.message:
        return
    freed = next(iter(facts.seen.freed), None)
    reading = ErrorReading(
        "",
        "backward goes through a part of the graph that an earlier backward call has freed.",
        "A backward call frees the saved tensors of everything it went through.",
        "If state is carried from step to step, `.detach()` it; if two losses share a part, add "
        "them up and call backward once; what was computed before the loop, compute inside.",
    )
    start = explained(facts, failure, reading)
    if freed is None:
        yield start
        return
    shared = facts.words(freed.node)
    by = facts.location(freed.origin)
    where = f"the call at {by} freed it" if by else "an earlier call freed it"
    # Nothing took what is carried over into a graph of its own: backward starts from it again.
    again = freed.variable if freed.stored is not None and freed.taken is None else ""
    made = None if again else facts.location(facts.graph.nodes[freed.node].origin)
    yield msgspec.structs.replace(
        start,
        message=f"backward is called from {again} a second time; its graph was freed."
        if again
        else f"backward goes through {shared} a second time; its saved tensors were freed.",
        location=made or start.location,
        node=facts.reference(freed.node),
        subject=freed.variable or facts.subject(freed.node),
        evidence=(
            f"{facts.op(freed.node)} is the first node both calls share; {where}",
            *_carried_over(facts, freed),
        ),
    )


def _carried_over(facts: Facts, freed: Freed) -> Iterable[str]:
    """The variable that carries it over, where that is stored and where it is taken."""
    if freed.variable:
        stored, taken = facts.location(freed.stored), facts.location(freed.taken)
        at = f", stored at {stored}" if stored else ""
        into = f" and used again at {taken}" if taken else ""
        yield f"carried over by {freed.variable}{at}{into}"


def nonscalar_root(facts: Facts) -> Iterable[FindingDraft]:
    """GS403: backward from a tensor of several elements without a gradient."""
    for _, finding in read(facts, (NONSCALAR,)):
        root = facts.graph.roots[0].node if facts.backward and facts.backward.error else None
        if root is None:
            yield finding
            continue
        made = facts.location(facts.graph.nodes[root].origin)
        info = facts.graph.nodes[root].outputs[0]
        shape = list(info.shape) if info else "unknown"
        where = f", made at {made}" if made else ""
        yield msgspec.structs.replace(
            finding,
            node=facts.reference(root),
            evidence=(*finding.evidence, f"its shape is {shape}{where}"),
        )


def gradient_shape(facts: Facts) -> Iterable[FindingDraft]:
    """GS404: a gradient that does not fit its tensor."""
    for failure, finding in read(facts, (SHAPES,)):
        sizes = re.findall(r"torch\.Size\(\[([\d, ]*)\]\)", failure.message)
        if len(sizes) != 2:
            yield finding
            continue
        given, root = (list(map(int, re.findall(r"\d+", size))) for size in sizes)
        more = added_up(elements(given), elements(root))
        yield msgspec.structs.replace(
            finding,
            evidence=(*finding.evidence, misfit(str(given), str(root))),
            why=f"{finding.why} {more[:1].upper()}{more[1:]}{'.' * bool(more)}".strip(),
            remedy=RESHAPED
            if elements(given) == elements(root)
            else f"Give one of shape {root}, such as `torch.ones({root})`.",
        )


def inplace_on_leaf_or_view(facts: Facts) -> Iterable[FindingDraft]:
    """GS405: an in-place operation that autograd cannot follow."""
    for failure, finding in read(facts, LEAVES):
        maker = re.search(r"Output \d+ of (\w+)", failure.message)
        evidence = finding.evidence
        if maker:
            evidence = (*evidence, f"the view came out of {maker[1].removesuffix('Backward0')}")
        yield msgspec.structs.replace(finding, evidence=evidence)


def function_returns_wrong(facts: Facts) -> Iterable[FindingDraft]:
    """GS406: the backward of a custom Function returns what it must not."""
    for failure, finding in read(facts, FUNCTIONS):
        yield _at_function(facts, failure, finding)
    yield from _missing_gradients(facts)


def _at_function(facts: Facts, failure: Failure, finding: FindingDraft) -> FindingDraft:
    """The finding with the node of the Function that torch named."""
    found = _OWN_FUNCTION.search(failure.message)
    name = next((group for group in found.groups() if group), "") if found else ""
    for node in facts.graph.nodes:
        if name and facts.op(node.id).removesuffix("Backward") == name:
            return msgspec.structs.replace(
                finding,
                message=f"{name}: {finding.message}",
                location=facts.location(node.origin) or finding.location,
                node=facts.reference(node.id),
                subject=name,
            )
    return msgspec.structs.replace(finding, subject=name or finding.subject)


def _missing_gradients(facts: Facts) -> Iterable[FindingDraft]:
    """None for an input that needs a gradient, which torch takes without a word."""
    learners = {item.leaf for item in facts.seen.learners if item.leaf is not None}
    wanted = {facts.graph.leaves[index].node for index in learners}
    for node in facts.graph.nodes:
        received = any(info.state == "finite" for info in facts.received(node.id))
        if node.kind != "custom" or not received:
            continue
        lost = [t for t, info in facts.sent(node.id) if info.state == "none" and t in wanted]
        lost = [t for t in lost if facts.received(t)[0].state in ("none", "not reached")]
        if lost:
            names = [facts.leaf_names[target] for target in lost]
            yield facts.warning(
                f"{facts.op(node.id)} returns None as the gradient of {listed(names)}.",
                node.id,
                subject=listed(names),
                evidence=f"{count(len(names), 'input')} that require grad got None",
                why="None says that this input has no influence on the result; torch believes it.",
                remedy="Return its gradient from backward, in the place of that argument.",
            )


def not_twice_differentiable(facts: Facts) -> Iterable[FindingDraft]:
    """GS407: a second derivative that does not exist."""
    for failure, finding in read(facts, TWICE):
        raiser = failure.raiser
        if raiser is not None and raiser.kind == "Function":
            yield _marked_once(facts, raiser, finding)
            continue
        node = None if raiser is None or raiser.node is None else facts.graph.nodes[raiser.node]
        is_first = "_backward" not in failure.message
        if node is not None and is_first and not node.backward_made:
            return  # not even its first derivative is implemented
        named = re.search(
            r"derivative for '?(?:aten::)?(\w+?)(?:_backward)?'? is not", failure.message
        )
        wanted = named[1].replace("_", "").lower() if named else ""
        guilty = [
            node
            for node in facts.graph.nodes
            if wanted and facts.op(node.id).lower().startswith(wanted[:8])
        ]
        if guilty:
            # Cdist, not the CdistBackward that the first derivative left in the graph.
            node = min(guilty, key=lambda node: len(facts.op(node.id)))
            finding = msgspec.structs.replace(
                finding,
                location=facts.location(node.origin) or finding.location,
                node=facts.reference(node.id),
            )
        yield finding


def _marked_once(facts: Facts, raiser: Raiser, finding: FindingDraft) -> FindingDraft:
    """The finding at the forward call of the Function that is marked ``once_differentiable``."""
    return msgspec.structs.replace(
        finding,
        message=f"{raiser.name} is differentiated twice, and its backward is marked "
        "once_differentiable.",
        location=facts.location(raiser.made) or finding.location,
        node=None if raiser.node is None else facts.reference(raiser.node),
        subject=raiser.name,
    )


def hook_returns_wrong(facts: Facts) -> Iterable[FindingDraft]:
    """GS408: a hook whose result cannot take the place of a gradient."""
    placed = [entry for entry in facts.seen.alterations if entry.function.startswith("register")]
    for _, finding in read(facts, HOOKS):
        if placed:
            where = facts.location(placed[-1].origin) or finding.location
            finding = msgspec.structs.replace(finding, location=where)
        yield finding


_NO_HISTORY = ErrorReading(
    "",
    "backward starts from a tensor without history: nothing that requires grad went into it.",
    "Tensors made by torch.tensor, torch.randn and the like do not require grad unless they are "
    "told to.",
    "Make what is to be learned with `requires_grad=True` or as an nn.Parameter; check that no "
    "torch.no_grad block is around the forward pass.",
)


def no_history(facts: Facts) -> Iterable[FindingDraft]:
    """GS409: backward from a tensor that nothing with requires_grad went into."""
    failure = facts.seen.failure
    if failure is None or not failed_without_history(facts):
        return
    raiser, reading = failure.raiser, _NO_HISTORY
    inside = raiser is not None and raiser.kind == "Function" and facts.location(raiser.raised)
    if raiser is not None and inside:
        reading = reading._replace(
            why="While backward runs, torch records no history: what a Function computes in its "
            "backward has none, unless it asks for it.",
            remedy=f"In {raiser.name}.backward, put `with torch.enable_grad():` around what is "
            "computed again.",
        )
    found = explained(facts, failure, reading)
    yield msgspec.structs.replace(found, location=inside or found.location)


def scaler_out_of_order(facts: Facts) -> Iterable[FindingDraft]:
    """GS518: a GradScaler that refuses, for something was left out."""
    return (finding for _, finding in read(facts, SCALER))
