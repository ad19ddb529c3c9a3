"""Rules about calls that torch takes as they are, and that mean something else than they were
written for."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from gradscope.diagnose._facts import Facts, FindingDraft
from gradscope.diagnose._misuses import MISUSES
from gradscope.diagnose._said import Words
from gradscope.diagnose._settings import SETTINGS
from gradscope.diagnose._states import STATES
from gradscope.diagnose._unused import UNUSED
from gradscope.model.observations import Oddity, OddityKind
from gradscope.words import listed

_WORDS: dict[str, Words] = {**STATES, **SETTINGS, **UNUSED, **MISUSES}
_ATTRIBUTES = ("weight drawn", "zero factor")


def looking_for(*kinds: OddityKind) -> Callable[[Facts], Iterable[FindingDraft]]:
    """The rule about these: one finding a line, and one for all attributes of a class."""

    def check(facts: Facts) -> Iterable[FindingDraft]:
        causes: dict[object, list[Oddity]] = {}
        for entry in facts.seen.oddities:
            if entry.kind in kinds and _counts(entry):
                at = facts.location(entry.origin)
                cause: object = (at.file, at.line) if at else None
                if entry.kind in _ATTRIBUTES:
                    cause = entry.name.rpartition(".")[0]
                causes.setdefault(cause, []).append(entry)
        return [_finding(facts, *entries) for entries in causes.values()]

    return check


def _counts(entry: Oddity) -> bool:
    return entry.times >= _WORDS[entry.kind].fewest


def _finding(facts: Facts, entry: Oddity, *others: Oddity) -> FindingDraft:
    words, shown = _WORDS[entry.kind], entry.figures
    beside = facts.location(entry.other)
    named = {
        "this": facts.expression(entry.origin) or "This",
        "name": entry.name,
        "times": f"{entry.times:,}",
        "other": facts.at(entry.other),
    }
    names = [one.name for one in others if entry.kind in _ATTRIBUTES]
    return facts.finding(
        words.severity,
        words.message.format(*shown, **named),
        next((n.id for n in facts.graph.nodes if n.origin == entry.origin), None),
        location=facts.location(entry.origin),
        subject=entry.name if words.is_named else facts.variable(entry.origin),
        evidence=(
            words.evidence.format(*shown, **named),
            *([f"so {'are' if len(names) > 1 else 'is'} {listed(names)}"] if names else []),
        ),
        why=words.why,
        remedy=words.remedy.format(**named),
        explains=beside if entry.kind == "own value" else None,
        fails=words.severity == "error",
    )
