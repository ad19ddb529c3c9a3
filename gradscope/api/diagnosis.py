"""Which rules stay silent, and what the others find in a report."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from gradscope.api.report import Report
from gradscope.model.report import Report as PlainReport
from gradscope.rules import RULES, IgnoredByComment, diagnose, find_rule
from gradscope.words import count


def codes(ignore: Collection[str]) -> tuple[str, ...]:
    """The codes of the rules that are named.

    Raises:
        TypeError: it is one text, or something that is no text is among them.
        GradscopeError: one of them is no rule.
    """
    if isinstance(ignore, str):
        raise TypeError(f"ignore takes several rules: ignore=[{ignore!r}]")
    if not isinstance(ignore, Collection):
        raise TypeError(f"ignore takes codes or names of rules, not {type(ignore).__name__}")
    for word in ignore:
        if not isinstance(word, str):
            raise TypeError(f"ignore takes codes or names of rules, not {type(word).__name__}")
    return tuple(find_rule(word, source="ignore").code for word in ignore)


def diagnosed(found: PlainReport, ignored: Collection[str], folder: str) -> Report:
    """The report with its findings, but for those that comments in the program take back.

    Args:
        found: what was examined.
        ignored: codes of rules that stay silent.
        folder: the one that its files are named from.
    """
    comments, every = IgnoredByComment(folder), diagnose(found, ignored)
    kept = comments.kept(every)
    taken_back = len(every) - len(kept)
    ignoring = [f"{count(taken_back, 'finding')} ignored by a comment"] if taken_back else []
    notes = (*found.notes, *ignoring, *comments.unknown, *RULES.problems)
    return Report.of(msgspec.structs.replace(found, findings=kept, notes=notes))
