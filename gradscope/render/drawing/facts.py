"""Facts about an item that a drawing shows where there is something to say: opposing gradients,
bytes that were saved, and, as further rows under it, the sum of what arrived on several edges, the
norms of what repeats, and what it saved for backward.

Must not know of any one format.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import starmap
from operator import attrgetter
from typing import NamedTuple

from gradscope.escaping import visible
from gradscope.model.plain import TensorInfo
from gradscope.model.report import GradientInfo
from gradscope.render.drawing.scale import FEWEST_CELLS, Round, exceptions, extremes, short, span
from gradscope.render.drawing.scene import Scene
from gradscope.render.options import Mark, Overlay
from gradscope.render.words import numbers
from gradscope.render.words.table import GAP, Part
from gradscope.simplify.gradients import ViewGradients
from gradscope.simplify.view import Item, Link
from gradscope.words import count

RANGE = "\u2013"

CHANGED = "#0f766e"
"""Of what differs in itself, in a comparison; a colour that is none of the scale of gradients."""


def cancelling(share: float) -> str:
    """``93 %``: how much of several contributions cancels; only where nothing is left ``100 %``."""
    words = f"{100 * share:.3g}"
    return f"{words if words != '100' or share == 1 else 'over 99.9'} %"


def up_to(shares: Sequence[float]) -> str:
    """``cancels up to 93 %``, in one of several rounds; "" for none."""
    return f"cancels up to {cancelling(max(shares))}" if shares else ""


def skipped(shares: Sequence[float]) -> str:
    """``83 % by skip``, of what arrives; ``71\u201393 % by skip`` of several rounds; or ""."""
    if not shares:
        return ""
    ends = (f"{100 * share:.0f}" for share in (min(shares), max(shares)))
    return f"{RANGE.join(dict.fromkeys(ends))} % by skip"


def residuals(scene: Scene, item: Item) -> list[float]:
    """Which share of the gradient that enters an item came through a skip, and not through what was
    added to it; of what a template holds in every round.  Nothing where it is no such sum."""
    return [share for share in residual_of_each(scene, item) if share is not None]


def residual_of_each(scene: Scene, item: Item) -> list[float | None]:
    """The same for each round of what a template holds; None for a round that is no such sum."""
    gradients = scene.gradients
    if gradients is None:
        return []
    if item.template is None:
        each = [gradients.arrivals(item)]
    elif item.folded:
        each = [gradients.entered({*one.nodes}) for one in item.rounds]
    else:
        each = [{(one.nodes[0], 0): 1} for one in item.rounds]
    places = [next(iter(some)) for some in each] if {*map(len, each)} == {1} else []
    return [*starmap(gradients.residual, places)]


def meeting(scene: Scene, item: Item) -> str:
    """What is to be said of gradients that meet in an item, or ""."""
    gradients = scene.gradients
    many = 0 if gradients is None else gradients.apart(item)
    parts = f"{many:,} gradients together" if many else ""
    words = (skipped(residuals(scene, item)), cancelled(scene, item), parts)
    return " · ".join(filter(None, words))


def _met(gradients: ViewGradients, item: Item) -> list[tuple[int, int]]:
    """The nodes of an item, each with an output, at which gradients may meet: of a closed group the
    only one that it is entered by; of a template those of all rounds, of leaves all."""
    if item.folded and item.kind != "leaves":
        places = [] if item.template is not None else [*gradients.arrivals(item)]
        return places if len(places) == 1 else []
    outputs = range(len(gradients.graph.nodes[item.members[0]].outputs) or 1)
    return [(node, output) for node in item.members for output in outputs]


def opposing(scene: Scene, item: Item) -> list[float]:
    """The shares that cancel where gradients that meet in a node oppose each other; of what a
    template holds those of all rounds, of a group of leaves those of each."""
    gradients = scene.gradients
    if gradients is None:
        return []
    shares = starmap(gradients.cancelled, _met(gradients, item))
    return [share for share in shares if share is not None]


def cancelled(scene: Scene, item: Item) -> str:
    """``2 gradients cancel 93 %``, where those that meet in a node oppose each other; of what a
    template holds the most of any round, ``cancels up to 93 %``; else ""."""
    shares, gradients = opposing(scene, item), scene.gradients
    if not shares or gradients is None:
        return ""
    if item.template is not None:
        return up_to(shares)
    place = max(_met(gradients, item), key=lambda place: gradients.cancelled(*place) or 0.0)
    if item.kind == "leaves" and len(shares) == 1:
        names = {leaf.node: visible(short(leaf.name)) for leaf in scene.graph.leaves}
        return f"{names[place[0]]} cancels {cancelling(shares[0])}"
    if item.kind == "leaves":
        return f"{len(shares)} of {len(item.members)} cancel up to {cancelling(max(shares))}"
    return f"{gradients.opposed(*place):,} gradients cancel {cancelling(max(shares))}"


def saved(scene: Scene, item: Item) -> int:
    """How many bytes the nodes of an item saved, where that is what is shown."""
    overlay = scene.options.overlay
    return sum(overlay.bytes.get(node, 0) for node in item.members) if overlay else 0


def most_saved(scene: Scene) -> int:
    """The most bytes that one item saved; 0 where that is not what is shown."""
    return max((saved(scene, item) for item in scene.view.items), default=0)


def edges_in_words(scene: Scene, link: Link) -> str:
    """What the number of several edges of a link is of, in each round of what is drawn once: ``sum
    of 3 edges``, all that comes to one place; ``largest of 3 edges``, to several places; else ``3
    edges together``, as one vector of which the norm is known; "" of one edge."""
    gradients = scene.gradients
    source, target = (scene.view.items[end] for end in (link.source, link.target))
    many = len(link.edges) // (scene.times(source) if source.template == target.template else 1)
    if many < 2 or gradients is None:
        return "" if many < 2 else f"{many:,} edges together"
    if gradients.largest_of(link) is not None:
        return f"largest of {many:,} edges"
    return f"sum of {many:,} edges" if gradients.adds_up(link) else f"{many:,} edges together"


def saved_words(scene: Scene, item: Item) -> str:
    """``89.9 MiB saved · 41.2%``, or ""."""
    overlay, amount = scene.options.overlay, saved(scene, item)
    if overlay is None or not amount:
        return ""
    return f"{numbers.size(amount)} saved · {numbers.share(amount, overlay.total)}"


def heaviest(marks: Mapping[int, Mark], numbers: Iterable[int]) -> Mark | None:
    """The mark that matters most among some nodes or edges, if one matters."""
    found = [marks[number] for number in numbers if number in marks] if marks else []
    return max((one for one in found if one.weight >= 0), key=attrgetter("weight"), default=None)


def mark_of(scene: Scene, item: Item) -> Mark | None:
    """The mark of a box.  That one node in a closed box is on one side alone says of the box that
    it is changed, and how much one differs nothing of what enters it."""
    marks = scene.options.overlay.nodes if scene.options.overlay else {}
    found = heaviest(marks, item.members)
    if found is None or not item.folded or all(marks.get(one) == found for one in item.members):
        return found
    if found.fill:
        by = f" by up to {percent(found.weight)}" if found.weight < 1 else ""
        return Mark("", weight=found.weight, more=f"differs{by} inside")
    if found.words.startswith("only in"):
        return replace(found, color=CHANGED, more="changed inside")
    return found


def percent(relative: float) -> str:
    """A relative difference for a reader; "" where there is none to speak of."""
    if not math.isfinite(relative):
        return ""
    return f"{numbers.number(float(f'{100 * relative:.3g}'))}%"


def marked(marks: Mapping[int, Mark], members: Sequence[int]) -> Mark | None:
    """The same of what stands for several, in words that hold of all of them together: ``max
    25%``, ``1 of 12 only in A``."""
    found = heaviest(marks, members)
    if found is None or not found.words or len(members) < 2:
        return found
    alike = sum(marks.get(one) == found for one in members)
    words = found.words
    if words.endswith("%"):
        is_exact = not any(marks[one].words.startswith("≥") for one in members if one in marks)
        words = f"max {'' if is_exact else '≥'}{words.removeprefix('≥')}"
    elif alike < len(members):
        words = f"{alike:,} of {len(members):,} {words}"
    return replace(found, words=words)


def of_edges(overlay: Overlay, edges: Sequence[int]) -> Mark | None:
    """What differs on edges, where their ends may be on both sides: ``edge only in A``."""
    mark = marked(overlay.edges, edges)
    if mark is None or "only in" not in mark.words:
        return mark
    noun = "edge" if mark.words.startswith("only") else "edges"
    return replace(mark, words=mark.words.replace("only", f"{noun} only"))


def difference(mark: Mark | None) -> Part:
    """What differs, in its colour."""
    return Part(mark.words, f"bold {mark.color}") if mark else Part("")


LEAD = 12
"""Cells that branches before a row may take."""


HOOKED = "changed by a hook"


def hooked(place: str) -> str:
    """``changed by a hook at train.py:7``, with its place where that is known."""
    return f"{HOOKED} at {place.rpartition('/')[2]}" if place else HOOKED


class Note(NamedTuple):
    """A row that is no edge.  ``total`` is set on sums; ``tensor`` is what the row is about.
    ``hook``: where the hook is that has made the total of what arrived; "" where that is not known.
    A sum has ``parts``; those that are ``given`` at roots came along no edge.  Where it
    ``is_whole``, all that arrives, the row of the item tells it, and the note what comes along the
    edge on which that row stands.  A note ``across`` all columns has only its remark, after a strip
    of its ``rounds``."""

    title: str = ""
    tensor: TensorInfo | None = None
    total: GradientInfo | None = None
    remark: str = ""
    hook: str | None = None
    rounds: tuple[Round, ...] = ()
    across: bool = False
    parts: int = 0
    given: int = 0
    is_whole: bool = False


def notes_of(scene: Scene, item: Item, gradients: ViewGradients | None = None) -> list[Note]:
    """The notes of an item, sums first; of other gradients than the scene's where
    they are given."""
    onwards = _to_next_round(scene, item, gradients or scene.gradients)
    cut = scene.cut(item.members)
    last = [Note(remark=cut, across=True)] if cut else []
    sums = _sums(scene, item, gradients or scene.gradients)
    return [*sums, *_strips(scene, item), *onwards, *_saved(scene, item), *last]


def _to_next_round(scene: Scene, item: Item, gradients: ViewGradients | None) -> list[Note]:
    """What goes on to the next round of what is drawn once, where nothing else leaves it."""
    link = scene.to_next_round.get(item.id)
    if link is None or gradients is None:
        return []
    # Of what comes last in a round it goes without saying.
    inside = [one for one in scene.view.items if one.template == item.template]
    if item is [one for one in inside if one.kind not in ("leaf", "leaves")][-1]:
        return []
    overlay, sizes = scene.options.overlay, span(gradients.link_by_rounds(link))
    mark = marked(overlay.edges, link.edges) if overlay else None
    words = (_marked(scene, f"‖g‖ {sizes}" if sizes else ""), mark.words if mark else "")
    remark = f"to the next round: {' · '.join(filter(None, words))}"
    return [Note(remark=remark, across=True)]


def frame(scene: Scene, template: Item) -> Note:
    """The head of what is drawn once for all rounds of a repeat."""
    rounds = tuple(scene.rounds(template))
    kind = template.type if template.type != template.title else ""
    title = " ".join(filter(None, (visible(template.title), visible(kind))))
    times = f"×{template.count:,}{scene.never_called(template)}"
    return Note(f"{title} {times}", rounds=rounds, across=True)


def _strips(scene: Scene, item: Item) -> list[Note]:
    """The strip of a repeat and its extremes, in one line if that is wide enough for both."""
    if item.template is not None:
        return []  # its strip is in its row
    rounds = tuple(one._replace(name=short(one.name)) for one in scene.rounds(item))
    if len(rounds) < 2:
        return []
    room = scene.options.width - LEAD - len(scene.only)
    beside = room - min(len(rounds), FEWEST_CELLS) - len(GAP)
    apart = _marked(scene, exceptions(rounds))
    words = _marked(scene, extremes(rounds, beside))
    first = Note(remark=words, rounds=rounds, across=True)
    if not apart and len(words) <= beside:
        return [first]
    second = Note(remark=_marked(scene, extremes(rounds, room)), across=True)
    return [first._replace(remark=apart), *([second] if second.remark else [])]


def _marked(scene: Scene, words: str) -> str:
    return f"{scene.only}{words}" if words else ""


def _sums(scene: Scene, item: Item, gradients: ViewGradients | None) -> list[Note]:
    """The upstream gradient wherever it is the sum of several; of a closed module, all that enters
    it."""
    if gradients is None or item.template is not None:
        return []
    hook = None if item.folded else gradients.backward.hook_on(item.members[0])
    if len(scene.incoming[item.id]) + scene.view.roots.count(item.id) < 2 and hook is None:
        return _hooks_inside(item, gradients)
    arrivals = gradients.arrivals(item)
    given = Counter((root.node, root.output) for root in scene.graph.roots)
    if item.folded:
        told = _marked(scene, meeting(scene, item))
        parts = sum(arrivals.values())
        whole = not scene.options.sides
        note = Note("", None, gradients.entering(item), told, parts=parts, is_whole=whole)
        return [note, *_hooks_inside(item, gradients)]
    return [
        Note(
            f"[{place[1]}]" if place[1] else "",
            scene.tensor(*place),
            gradients.backward.at(*place),
            HOOKED if place in gradients.replaced else _arriving(scene, gradients, place),
            hook=hook if place in gradients.replaced else None,
            parts=amount,
            given=given[place],
            # How far two sides lie apart is known of edges.
            is_whole=hook is None and len(arrivals) == 1 and not scene.options.sides,
        )
        for place, amount in arrivals.items()
        if amount > 1 or place in gradients.replaced
    ]


def _hooks_inside(item: Item, gradients: ViewGradients) -> list[Note]:
    """That hooks of the program changed gradients at nodes that are drawn as one."""
    inside = {*item.members} if item.folded else set()
    changed = sum(node in inside for node in gradients.backward.altered)
    words = f"{count(changed, 'gradient')} changed by a hook inside"
    return [Note(remark=words, across=True)] if changed else []


def parts_of(note: Note) -> str:
    """``3 edges``, ``1 edge and the given``, ``2 given``: what a sum is of."""
    edges = note.parts - note.given
    given = "the given" if note.given == 1 else f"{note.given} given" if note.given else ""
    return " and ".join(filter(None, (count(edges, "edge") if edges else "", given)))


def _arriving(scene: Scene, gradients: ViewGradients, place: tuple[int, int]) -> str:
    """Which share of what meets at a place came through a skip, and which cancels; or ""."""
    skip, cancelled = gradients.residual(*place), gradients.cancelled(*place)
    words = [skipped([] if skip is None else [skip])]
    if cancelled is not None:
        words.append(f"{gradients.opposed(*place):,} gradients cancel {cancelling(cancelled)}")
    return _marked(scene, " · ".join(filter(None, words)))


def _saved(scene: Scene, item: Item) -> list[Note]:
    if not scene.options.saved or item.folded:
        return []
    node = scene.graph.nodes[item.members[0]]
    lead = "_saved_" * (scene.options.names == "torch")
    return [
        Note(lead + visible(name), tensor, remark="saved for backward")
        for name, tensor in node.saved
    ]
