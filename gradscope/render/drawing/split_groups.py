"""Which parameters get a row of their own where a gradient was taken apart, and which sentences
their numbers are.

Must not know how a table is laid out."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath

from gradscope.model.report import Report
from gradscope.model.studies import Combined, Split, SplitLeaf
from gradscope.render.words.text import shorten
from gradscope.words import count, joined, listed, one_line

MOST_PIECES = 4
"""Pieces that are told of at a line or a node."""

MOST_GROUPS = 16
"""Rows that modules are put together for."""

DOMINANT = 0.9
"""A piece with this share of what arrives leaves little to the others."""

MINOR = 0.01
"""A piece with less everywhere hardly counts."""

FAR_MORE = 3
"""Times the median from which on a sample stands out."""

LONGEST = 40
"""Characters of a piece's name in a sentence."""

ROUNDING = 1e-5
"""Times the largest norm up to which another may be rounding, as that of a bias before a batch
norm is: there no direction is told of."""

OPPOSED = -0.2
"""A cosine from which on two pieces are said to oppose each other."""


def leaf_groups(
    report: Report, split: Split, depth: int | None, is_all: bool
) -> dict[str, Combined]:
    """The leaves by module, as deep as there is room for; each for itself where all are asked
    for."""
    named = [(_name(report, leaf), leaf) for leaf in split.leaves]
    deepest = max((name.count(".") for name, _ in named), default=0)
    found: dict[str, list[SplitLeaf]] = {}
    for level in range(depth or deepest, -1, -1):
        found = {}
        for name, leaf in named:
            found.setdefault(name if is_all else _module(name, level), []).append(leaf)
        if depth or is_all or len(found) <= MOST_GROUPS or level <= 1:
            break
    return {name: Combined(leaves) for name, leaves in found.items()}


def largest_pieces(split: Split) -> list[int]:
    """The pieces that are told of where there is room for a few, in the order of the program."""
    norms = Combined(split.leaves).norms
    return sorted(sorted(range(len(norms)), key=lambda piece: by_size(norms[piece]))[:MOST_PIECES])


def _name(report: Report, leaf: SplitLeaf) -> str:
    return report.graph.leaves[leaf.leaf].name


def _module(name: str, level: int) -> str:
    parts = name.split(".")
    return ".".join(parts[: min(level, len(parts) - 1)]) or name


# ---------------------------------------------------------------- what they say


def sentences(report: Report, split: Split, groups: Mapping[str, Combined]) -> str:
    """What stands out, in one line; "" where nothing does."""
    whole = Combined(split.leaves)
    names = [shorten(one_line(piece.name), LONGEST, "…") for piece in split.pieces]
    if split.kind != "term":
        names = [
            name if piece.rest else f"{split.kind} {name}"
            for name, piece in zip(names, split.pieces, strict=True)
        ]
    bad = [name for name, norm in zip(names, whole.norms, strict=True) if not math.isfinite(norm)]
    if bad:
        verb = "brings" if len(bad) == 1 else "bring"
        return f"{listed(bad)} {verb} NaN or infinity"
    if split.kind == "sample":
        norms = [
            norm for norm, piece in zip(whole.norms, split.pieces, strict=True) if not piece.rest
        ]
        return "; ".join((*_mixed(report, split), *_outliers(names, norms)))
    least = ROUNDING * max((max(one.norms) for one in groups.values()), default=0.0)
    told = [*_dominant(names, groups, least)] if split.kind == "term" else []
    minor = [*_minor(report, names, groups, is_told=bool(told))]
    told += _opposed(names, groups, least) if split.kind == "term" else ()
    return "; ".join((*told, *minor))


def _mixed(report: Report, split: Split) -> Iterator[str]:
    """Where samples do not stay apart."""
    if split.mixing is not None:
        share = percent(float(split.mixing.share))
        yield (
            f"samples mix at {place_of(report, split.mixing.node)}: {share} of what it "
            "sends on for one of them, by norm, goes to the rows of others"
        )


def place_of(report: Report, number: int) -> str:
    """An operation, and its line."""
    node = report.graph.nodes[number]
    origin = report.graph.origin_of(node)
    return node.short_op + (f" ({PurePath(origin.file).name}:{origin.line})" if origin else "")


def _outliers(names: Sequence[str], norms: Sequence[float]) -> Iterator[str]:
    """A sample that brings far more than the usual one; those that bring nothing."""
    usual, largest = statistics.median(norms), max(norms)
    if usual and largest >= FAR_MORE * usual:
        times = f"{largest / usual:.3g} times as much as the median sample"
        yield f"{names[norms.index(largest)]} brings {times}"
    silent = norms.count(0)
    if silent:
        verb = "brings" if silent == 1 else "bring"
        yield f"{count(silent, 'sample')} of {len(norms):,} {verb} 0"


def by_size(norm: float) -> float:
    """A key that puts the largest first, and before them what is not finite."""
    return -norm if math.isfinite(norm) else -math.inf


def _dominant(names: Sequence[str], groups: Mapping[str, Combined], least: float) -> Iterator[str]:
    """The piece that brings nearly all to what others reach as well."""
    found: dict[int, list[tuple[str, float]]] = {}
    for name, together in groups.items():
        share = max(together.shares)
        largest = together.shares.index(share)
        if DOMINANT <= share < 1 and together.norms[largest] > least:
            found.setdefault(largest, []).append((name, share))
    for piece, reached in found.items():
        low, *_, high = sorted(share for _, share in [*reached, *reached])
        parts = percent(low) if percent(low) == percent(high) else f"{percent(low)} or more"
        yield f"{names[piece]} brings {parts} of what reaches {listed(name for name, _ in reached)}"


def _opposed(names: Sequence[str], groups: Mapping[str, Combined], least: float) -> Iterator[str]:
    """The two pieces that point against each other most, and where."""
    pairs = ((together.opposed(least), name) for name, together in groups.items())
    known = [(*pair, name) for pair, name in pairs if pair is not None]
    cosine, one, other, name = min(known, default=(0.0, 0, 0, ""))
    if cosine <= OPPOSED:
        yield (
            f"{names[one]} and {names[other]} oppose each other in {name} (cosine {signed(cosine)})"
        )


def _minor(
    report: Report, names: Sequence[str], groups: Mapping[str, Combined], is_told: bool
) -> Iterator[str]:
    """Pieces that reach nothing, or hardly count wherever they do, if that is not told yet."""
    shares = [one.shares for one in groups.values()]
    nowhere, hardly = [], []
    for piece, name in enumerate(names):
        largest = max((row[piece] for row in shares), default=0.0)
        if largest == 0 and all(map(math.isfinite, (row[piece] for row in shares))):
            nowhere.append(name + _counted_at(report, names, piece))
        elif largest < MINOR:
            hardly.append(name)
    if nowhere:
        verb = "brings" if len(nowhere) == 1 else "bring"
        yield f"{joined(nowhere)} {verb} 0 to every parameter"
    if hardly and not is_told:
        verb = "brings" if len(hardly) == 1 else "bring"
        yield f"{listed(hardly)} {verb} less than {percent(MINOR)} to every parameter"


def _counted_at(report: Report, names: Sequence[str], piece: int) -> str:
    """`` alone (what comes through logits is counted there)``, where other pieces are before."""
    pieces, graph = report.split.pieces if report.split else (), report.graph
    ends = (
        (at, out) for at in pieces[piece].nodes for out, _ in enumerate(graph.nodes[at].outputs)
    )
    above = {graph.edges[edge].source for end in ends for edge in graph.edges_to(dict([end]))}
    before = [name for name, one in zip(names, pieces, strict=True) if above & {*one.nodes}]
    return f" alone (what comes through {listed(before)} is counted there)" if before else ""


def percent(share: float) -> str:
    """A share as a person reads it: what is not all is never 100 %, and what is there never 0 %."""
    if not math.isfinite(share):
        return "–"
    whole = round(100 * share)
    if whole == 100 and share < 1:
        return ">99 %"
    return "<1 %" if whole == 0 and share > 0 else f"{whole} %"


def signed(cosine: float) -> str:
    """A cosine with two decimals."""
    return f"{cosine:.2f}".replace("-", "−")
