"""Where a sequence repeats itself.  Knows nothing of graphs."""

from __future__ import annotations

from collections.abc import Sequence

FEWEST_REPEATS = 3

CANDIDATES = 6
"""Periods that are tried at a place: the distances to the next times the same word occurs."""


def find_repeats(words: Sequence[int]) -> list[tuple[int, int, int]]:
    """Where a sequence repeats itself: (start, period, count), from left to right, none
    overlapping.

    At each place the period that covers most is taken, and of equal ones the shortest.  Where a
    first round was not quite like the others, rounds begin where those others do.  Linear in the
    length of the sequence.
    """
    search = _Search(words)
    found = []
    start = 0
    while start < len(words):
        covered, period = 0, 1
        for candidate in search.periods(start):
            count = search.repeats(start, candidate)
            if count >= FEWEST_REPEATS and count * candidate > covered:
                # Strictly more, so that of y*2, y*2, y*2 … a period of 1 wins over 2 and 3.
                covered, period = count * candidate, candidate
        if covered:
            start += search.late(start, period)
            found.append((start, period, covered // period))
        start += covered or 1
    return found


class _Search:
    """A sequence with what was learnt of it."""

    def __init__(self, words: Sequence[int]) -> None:
        self._words = words
        self._next = _next_places(words)
        # For a period the place up to which words were seen to equal those a period before: no
        # stretch is compared twice.
        self._ends: dict[int, int] = {}

    def periods(self, start: int) -> list[int]:
        """The distances from a place to the next ones with the same word, nearest first."""
        found: list[int] = []
        place = self._next[start]
        while place is not None and len(found) < CANDIDATES:
            found.append(place - start)
            place = self._next[place]
        return found

    def repeats(self, start: int, period: int) -> int:
        """How often the ``period`` words at ``start`` follow each other."""
        words = self._words
        end = self._ends.get(period, 0)
        if end < start + period:
            end = start + period
            while end < len(words) and words[end] == words[end - period]:
                end += 1
            self._ends[period] = end
        return (end - start) // period

    def late(self, start: int, period: int) -> int:
        """How many words a repeat that was found in the middle of a round begins too early.

        A loop whose first round differs at its beginning matches from there on to the end of the
        last round.
        """
        words, end = self._words, self._ends[period]
        pattern = set(words[start : start + period])
        goes_on = end < len(words) and words[end] in pattern
        began = start > 0 and words[start - 1] in pattern
        return (end - start) % period if began and not goes_on else 0


def _next_places(words: Sequence[int]) -> list[int | None]:
    """For every place the next one with the same word."""
    found: list[int | None] = [None] * len(words)
    last: dict[int, int] = {}
    for place in range(len(words) - 1, -1, -1):
        found[place] = last.get(words[place])
        last[words[place]] = place
    return found
