"""What a reader should take away of a comparison, in a sentence."""

from __future__ import annotations

from collections import Counter

from gradscope.analyses.diff.comparison import Comparison, What
from gradscope.escaping import visible
from gradscope.render.words import numbers
from gradscope.render.words.text import shorten
from gradscope.words import count, listed, one_line

LONGEST = 40
"""Letters of an expression in the sentence."""

SIGNS = {
    "removed": "only in A",
    "added": "only in B",
    "changed": "changed",
    "cut": "edge only in A",
    "joined": "edge only in B",
    "moved": "edge leads elsewhere",
}


def verdict(found: Comparison) -> str:
    """``different: 36 nodes only in A``, or that there is no difference, and of how much."""
    if found.verdict == "different":
        return "different: " + ", ".join(_parts(found))
    if found.verdict == "unrelated":
        return (
            f"different programs: {found.matched:,} of {found.a.nodes:,} and "
            f"{found.b.nodes:,} nodes correspond, too few to compare them one by one"
        )
    compared = ", no gradients to compare"
    if found.compared:
        compared = f", {count(found.compared, 'gradient')}"
    same = f"{count(found.matched, 'node')}{compared}"
    if found.verdict == "identical":
        return f"identical: {same}"
    distances = [one.distance for one in found.edges]
    distances += [two for one in found.leaves for two in (one.values, one.gradient) if two]
    largest = max((float(distance.relative) for distance in distances), default=0.0)
    return f"equal within the tolerance: {same}, differences up to {numbers.number(largest)}"


def _parts(found: Comparison) -> list[str]:
    """What differs, counted."""
    counts = Counter(change.what for change in found.changes)
    parts = [f"{_counted(what, many)}{_which(found, what)}" for what, many in counts.items()]
    values = sum(found.differs(leaf.values) for leaf in found.leaves)
    parts += [f"values of {count(values, 'leaf')} differ"] if values else []
    differing = len([edge for edge in found.differing_edges() if edge.a >= 0])
    if differing:
        parts.append(f"{differing:,} of {count(found.compared, 'gradient')} differ")
    # A hook of a leaf is on no edge.
    leaves = "" if parts else count(len(found.differing_leaves()), "leaf")
    return parts or [f"what arrives at {leaves} differs"]


def _counted(what: What, many: int) -> str:
    """``36 nodes only in A``, ``2 edges lead elsewhere``."""
    sign = SIGNS[what]
    words = sign.removeprefix("edge ")
    noun = "node" if words == sign else "edge"
    return f"{count(many, noun)} {words if many == 1 else words.replace('leads', 'lead')}"


def _which(found: Comparison, what: What) -> str:
    """`` (self.norm(x) ×12, 24 leaves)``: what most differences of this kind are of, as far as
    lines of the program made it, and how many are leaves."""
    places = [one.a or one.b for one in found.changes if one.what == what]
    known = (one.expression for one in places if one is not None and one.file)
    many = Counter(visible(one_line(shorten(text, LONGEST, "…"))) for text in known)
    names = [f"{text} ×{times:,}" if times > 1 else text for text, times in many.most_common()]
    leaves = sum(one is not None and one.op == "AccumulateGrad" for one in places)
    told = ", ".join(filter(None, (listed(names, 1), count(leaves, "leaf") if leaves else "")))
    return f" ({told})" if told else ""
