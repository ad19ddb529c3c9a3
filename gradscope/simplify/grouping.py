"""From a graph to its hierarchy: by module call, by repeats, by function, and in parts.

All passes work on sequences in the order in which the program made things, so that every group is
a stretch of time; groups of a graph whose ids are in that order never lie on a cycle.  Linear in
the size of the graph, and without recursion.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import accumulate, pairwise

from gradscope.model.report import Graph, Origin
from gradscope.simplify.draft import WHOLE, Draft, GroupDraft, find_repeats
from gradscope.simplify.hierarchy import Hierarchy
from gradscope.words import pattern

MANY_ENTRIES = 120
"""A group that holds more is divided into parts."""

PART = 64
"""Entries of a part at most."""

FUNCTION_ENTRIES = 12
"""Where less is made in one place, functions are not told apart."""

FEWEST_IN_FUNCTION = 3

FEWEST_BEGUN = 6
"""A loop's first round of fewer entries is as well seen one by one."""

_LABEL_LENGTH = 60

MOST_STEPS = 4
"""Operations by which a loop is known; one of more is called by its function."""


def hierarchy_of(graph: Graph, keep: int | None = None) -> Hierarchy:
    """The hierarchy of a graph; the leaf to ``keep`` is put into no group."""
    draft = Draft(graph)
    grouping = _Grouping(draft)
    by_module(draft)
    # Those inside come later than those around them: so a group is known before what holds it.
    for group in range(len(draft.groups) - 1, WHOLE - 1, -1):
        grouping.refine(group)
    # Last, because outer groups are described by one round.
    for made in [one for one in draft.groups if one.kind == "repeat"]:
        grouping.divide(made)
    return draft.finished(keep)


def by_module(draft: Draft) -> None:
    """A group for every module call in which nodes were made, nested as the calls are."""
    graph = draft.graph
    # Groups stand among nodes as ~number, for the numbers of both begin at 0.
    entries: dict[int | None, int] = {None: ~WHOLE}
    # Ids count from the node made last: backwards they are in the order of the program.
    for node in reversed(graph.nodes):
        if node.kind == "leaf":
            continue
        missing = []
        call = node.call
        # Up to the first call that is known, instead of a recursion over nested modules.
        while call not in entries:
            missing.append(call)
            call = graph.calls[call].parent  # type: ignore[index]  # None is there from the start
        for inner in reversed(missing):
            record = graph.calls[inner]  # type: ignore[index]
            title = record.path or record.type
            origin = None if record.origin is None else graph.origins[record.origin]
            known = (origin.label, record.origin) if origin is not None else ()
            entry = draft.add(GroupDraft("module", title, record.type, 1, *known))
            draft.groups[~entries[call]].contents.append(entry)
            entries[inner], call = entry, inner
        draft.groups[~entries[node.call]].contents.append(node.id)


class _Grouping:
    """The passes inside one group; equal things get equal numbers, by which repeats are found."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.graph = draft.graph
        self._numbers: dict[object, int] = {}
        self._words: dict[int, int] = {}
        self._roots = {root.node for root in draft.graph.roots}

    def refine(self, group: int) -> None:
        """Fold the repeats of a group, again inside their rounds, then group by function and
        divide."""
        made = self.draft.groups[group]
        # The list grows while it is walked: rounds may hold repeats of their own.
        waiting = [made]
        for one in waiting:
            waiting += self._fold_repeats(one)
        for one in waiting:
            self._by_function(one)
        if made.kind == "module":
            inside = tuple(map(self._word, made.contents))
            self._words[~group] = self._number("module", made.type, inside)
        for one in waiting:
            self.divide(one)

    # ------------------------------------------------------------------ repeats

    def _fold_repeats(self, made: GroupDraft) -> list[GroupDraft]:
        """Fold until nothing repeats any more; returns the new groups that have rounds of their
        own to look at."""
        rounds: list[GroupDraft] = []
        while True:
            contents: list[int] = []
            for stretch in self._stretches(made.contents):
                contents += self._folded(stretch, rounds)
            if len(contents) == len(made.contents):
                return rounds
            # All of a round that repeats would be a group that holds nothing but itself.
            if len(contents) == 1 and made.kind in ("round", "repeat", "begun"):
                return rounds
            made.contents = contents

    def _stretches(self, contents: list[int]) -> Iterable[list[int]]:
        """Contents cut after each root: a seed must not vanish inside a repeat."""
        stretch: list[int] = []
        for entry in contents:
            stretch.append(entry)
            if entry in self._roots:
                yield stretch
                stretch = []
        yield stretch

    def _folded(self, stretch: list[int], rounds: list[GroupDraft]) -> list[int]:
        found = find_repeats([self._word(entry) for entry in stretch])
        contents: list[int] = []
        done = 0
        ends = [start for start, _, _ in found[1:]] + [len(stretch)]
        for (first, period, count), end in zip(found, ends, strict=False):
            start = self._turned(stretch[:end], first, period, count)
            entries = stretch[start : start + period * count]
            # Two networks that take turns in a loop are two repeats.
            sets = self._connected(entries, period)
            begun = []
            if len(sets) == 1:
                begun = self._begun(stretch[done:start], entries[:period])
            begin = start - sum(begun)
            contents += stretch[done:begin]
            contents += self._first_rounds(stretch[begin:start], begun, rounds)
            for places in sets:
                own = [entry for at, entry in enumerate(entries) if at % period in places]
                contents.append(self._repeat(own, len(places), count, rounds, 1 + len(begun)))
            done = start + period * count
        return contents + stretch[done:]

    def _begun(self, before: Sequence[int], one: Sequence[int]) -> list[int]:
        """How many entries each round has that stands before a repeat and lacks some of what this
        one has, in the order of the program: the state that a loop begins with has no history yet.
        """
        functions = set(map(self._made_in, one))
        found: list[int] = []
        while True:
            left = before[: len(before) - sum(found)]
            place, many = len(one), 0
            for entry in reversed(left):
                place = next(
                    (at for at in reversed(range(place)) if self._is_at(entry, one[at])), -1
                )
                # What comes last in a round does so in each.
                if place < 0 or (not many and place != len(one) - 1):
                    break
                many += 1
            # A call before the loop has what one function of the round made, not the loop itself.
            known = set(map(self._made_in, left[len(left) - many :]))
            if 2 * many <= len(one) or known != functions:
                return found[::-1]
            found.append(many)

    def _made_in(self, entry: int) -> str:
        """The function in which an entry was made or called."""
        origin = self._origin(entry)
        return "" if origin is None else origin.function

    def _is_at(self, entry: int, other: int) -> bool:
        """Whether two entries were made at one place: by one operation, or one call of modules."""
        made, known = self.draft.group_of(entry), self.draft.group_of(other)
        if made is None or known is None or made.origin is None:
            return self._word(entry) == self._word(other)
        return (made.type, made.origin) == (known.type, known.origin)

    def _first_rounds(
        self, entries: list[int], begun: list[int], rounds: list[GroupDraft]
    ) -> list[int]:
        """These entries, of rounds that have ``begun`` a loop, each of so many, as a group a round;
        of few entries each is as well seen by itself."""
        contents: list[int] = []
        ends = accumulate(begun)
        for number, (end, many) in enumerate(zip(ends, begun, strict=True)):
            own = entries[end - many : end]
            if many >= FEWEST_BEGUN:
                made = GroupDraft("begun", "first round", contents=own)
                if len(begun) > 1:
                    made.title = f"round {number + 1}"
                made.label = self._described(own, many, 1).label
                rounds.append(made)
                word = self._number("begun", tuple(map(self._word, own)))
                own = [self.draft.add(made)]
                self._words[own[0]] = word
            contents += own
        return contents

    def _connected(self, entries: Sequence[int], period: int) -> list[set[int]]:
        """The places of a round, 0 … period - 1, in sets between which no gradient flows in any
        round of these entries; each set in the order of the program, which no edge contradicts."""
        if period == 1:
            return [{0}]
        place_of = {
            node: at % period for at, entry in enumerate(entries) for node in self._all(entry)
        }
        joined = list(range(period))

        def first(place: int) -> int:
            while joined[place] != place:
                joined[place] = place = joined[joined[place]]
            return place

        for node, place in place_of.items():
            for target in self._targets[node]:
                one, other = sorted((first(place), first(place_of.get(target, place))))
                joined[other] = one
        sets: dict[int, set[int]] = {}
        for place in range(period):
            sets.setdefault(first(place), set()).add(place)
        return list(sets.values())

    @cached_property
    def _targets(self) -> list[list[int]]:
        """For every node those that its gradients flow to, but for leaves."""
        found: list[list[int]] = [[] for _ in self.graph.nodes]
        for edge in self.graph.edges:
            if self.graph.nodes[edge.target].kind != "leaf":
                found[edge.source].append(edge.target)
        return found

    def _turned(self, stretch: list[int], start: int, period: int, count: int) -> int:
        """Where rounds begin whose modules are called alike, or else where the program goes back to
        an earlier line: what comes before a loop, such as the bottom of a UNet, may look like the
        end of its round, and so does a first round that lacks its beginning."""
        found, gained, most, whole = start, 0, 0, period * count
        is_back = self._goes_back(stretch[start + period - 1], stretch[start])
        for last, after in zip(
            range(start, start + period), stretch[start + whole :], strict=False
        ):
            if self._word(after) != self._word(stretch[last]):
                break
            before, behind = (
                self._titles(stretch[at : at + whole : period]) for at in (last, last + period)
            )
            gained += ("…" in pattern(before)) - ("…" in pattern(behind))
            turns = not is_back and self._goes_back(stretch[last], stretch[last + 1])
            if gained > most or (turns and gained == most):
                found, most = last + 1, gained
                is_back = is_back or turns
        return found

    def _goes_back(self, entry: int, after: int) -> bool:
        """Whether the program went to an earlier line of a function from one entry to another."""
        before, now = (self._origin(one) for one in (entry, after))
        if before is None or now is None or before.function != now.function:
            return False
        return now.file == before.file and now.line < before.line

    def _origin(self, entry: int) -> Origin | None:
        """Where an entry was made or called; of a group of several its first."""
        made = self.draft.group_of(entry)
        while made is not None and made.origin is None and made.contents:
            entry = made.contents[0]
            made = self.draft.group_of(entry)
        origin = self.graph.nodes[entry].origin if made is None else made.origin
        return None if origin is None else self.graph.origins[origin]

    def _titles(self, entries: list[int]) -> list[str]:
        """What entries are called that are modules; nothing where they are something else."""
        known = [made for made in map(self.draft.group_of, entries) if made is not None]
        return [made.title for made in known if made.kind == "module"]

    def _repeat(
        self, entries: list[int], period: int, count: int, rounds: list[GroupDraft], first: int
    ) -> int:
        """A repeat, whose rounds are counted from ``first`` on."""
        made = self._described(entries, period, count)
        # Before the rounds become groups: repeats are alike when their rounds and number are.
        word = self._number("repeat", count, tuple(map(self._word, entries[:period])))
        if period == 1:
            made.contents = entries
        else:
            for number, name in enumerate(self._round_names(entries, period, first)):
                part = entries[number * period : (number + 1) * period]
                each = GroupDraft("round", name, contents=part)
                made.contents.append(self.draft.add(each))
                rounds.append(each)
        entry = self.draft.add(made)
        self._words[entry] = word
        return entry

    def _round_names(self, entries: list[int], period: int, first: int) -> list[str]:
        """What each round is called: by the largest of the modules that are others in each, as in a
        loop over a list of modules; else by its number."""
        rounds = range(len(entries) // period)
        columns = [entries[i::period] for i in range(period)]
        named = [column for column in columns if len(set(self._titles(column))) == len(rounds)]
        if not named:
            return [f"round {first + number}" for number in rounds]
        return self._titles(max(named, key=lambda column: len(self._all(column[0]))))

    def _described(self, entries: list[int], period: int, count: int) -> GroupDraft:
        """``h.*`` for modules that differ in a number only, with what the loop does between them;
        else operations, or where these are many the function in which they are, and
        expressions."""
        columns = [self._titles(entries[i::period]) for i in range(period)]
        if all(columns) or any(len(set(titles)) > 1 for titles in columns):
            first = [self.draft.group_of(entry) for entry in entries[:period]]
            types = dict.fromkeys(made.type for made in first if made and made.kind == "module")
            titles = dict.fromkeys(pattern(titles) for titles in columns if titles)
            names = list(titles)
            if names == ["*"]:
                # Those in a Sequential have nothing but numbers for names.
                each = [title for entry in entries for title in self._titles([entry])]
                if all(map(str.isdecimal, each)):
                    each.sort(key=int)
                names = [f"{each[0]}\u2013{each[-1]}"]
            return GroupDraft("repeat", _shortened(names), " ".join(types), count=count)
        # In the order of the program, and of repeats one round.
        nodes = [
            self.graph.nodes[node]
            for entry in entries[:period]
            for node in self._all(entry, slice(1))
        ]
        # From the last to the first, as backward comes by.  One expression often makes several
        # nodes; it is said once.
        origins = [self.graph.origin_of(node) for node in reversed(nodes)]
        said: list[str] = []
        for origin in origins:
            # The whole is made last, and comes by first; its parts stand in it.
            words = origin.expression if origin else ""
            part = rf"(?<!\w){re.escape(words)}(?!\w)"
            if words and not any(re.search(part, whole) for whole in said):
                said.append(words)
        steps = list(dict.fromkeys(node.short_op for node in reversed(nodes)))
        functions = {_short(origin.function) for origin in origins if origin}
        # The repeat is around the modules that are called in it.
        called = {f"{name}.forward" for name in self._modules(entries[:period])}
        outer = functions - called or functions
        title = _shortened(steps)
        if len(steps) > MOST_STEPS and len(outer) == 1 and not outer & {"", "<module>"}:
            # Only that it is there is known: the loop may be in what calls the function.
            title = f"repeat in {outer.pop()}()"
        return GroupDraft("repeat", title, label=_shortened(said), count=count)

    def _all(self, entry: int, rounds: slice = slice(None)) -> list[int]:
        """All nodes of an entry in the order of the program; of repeats these rounds."""
        found: list[int] = []
        waiting = [entry]
        while waiting:
            entry = waiting.pop()
            made = self.draft.group_of(entry)
            if made is None:
                found.append(entry)
            else:
                inside = made.contents[rounds] if made.kind == "repeat" else made.contents
                waiting.extend(reversed(inside))
        return found

    def _modules(self, entries: list[int]) -> set[str]:
        """The classes of the modules that are called in some entries."""
        waiting, found = [*entries], set()
        for entry in waiting:
            made = self.draft.group_of(entry)
            if made is not None:
                waiting.extend(made.contents)
                found |= {made.type} if made.kind == "module" else set()
        return found

    def _word(self, entry: int) -> int:
        if entry not in self._words:
            node = self.graph.nodes[entry]
            # The line counts besides the operation: two lines that do the same are no loop.
            self._words[entry] = self._number("node", node.op, node.origin)
        return self._words[entry]

    def _number(self, *key: object) -> int:
        return self._numbers.setdefault(key, len(self._numbers))

    # ------------------------------------------------------------------ functions and parts

    def _by_function(self, made: GroupDraft) -> None:
        """Group neighbours that one function made, where several did and there is much."""
        functions = [self._function(entry) for entry in made.contents]
        if len(functions) <= FUNCTION_ENTRIES or len(set(functions)) < 2:
            return
        contents: list[int] = []
        start = 0
        for end in range(1, len(functions) + 1):
            if end < len(functions) and functions[end] == functions[start]:
                continue
            name = functions[start]
            is_group = bool(name) and end - start >= FEWEST_IN_FUNCTION
            pieces = self._pieces(made, start, end) if is_group else [list(range(start, end))]
            for places in pieces:
                own = [made.contents[place] for place in places]
                if name and len(own) >= FEWEST_IN_FUNCTION:
                    word = self._number("function", name, tuple(map(self._word, own)))
                    own = [self.draft.add(GroupDraft("function", f"{name}()", contents=own))]
                    self._words[own[0]] = word
                contents += own
            start = end
        made.contents = contents

    def _function(self, entry: int) -> str:
        """The function in which operations were made; "" for modules, and for what several
        functions or no function of its own made."""
        made = self.draft.group_of(entry)
        if made is not None and made.kind not in ("repeat", "round"):
            return ""
        # A single node is by far the most frequent.
        nodes = [entry] if made is None else self._all(entry)
        origins = {self.graph.nodes[node].origin for node in nodes}
        names = {"" if at is None else self.graph.origins[at].function for at in origins}
        name = _short(names.pop()) if len(names) == 1 else ""
        # A module's own forward is what the module's group shows already.
        return "" if name.startswith("<") or name.endswith(".forward") else name

    def divide(self, made: GroupDraft) -> None:
        """Divide what is too long to be seen at once into parts of like size, and that again until
        it is not, or there is too little that hangs together."""
        sizes = [1] * len(made.contents)
        whole = len(sizes)
        while len(made.contents) > MANY_ENTRIES:
            parts = -(-len(sizes) // PART)
            cuts = [len(sizes) * part // parts for part in range(parts + 1)]
            contents: list[int] = []
            combined: list[int] = []
            for start, end in pairwise(cuts):
                for places in self._pieces(made, start, end):
                    own = [made.contents[place] for place in places]
                    first, size = sum(combined) + 1, sum(sizes[place] for place in places)
                    if len(own) > 1:
                        title = f"{first:,}\u2013{first + size - 1:,} of {whole:,}"
                        own = [self.draft.add(GroupDraft("part", title, contents=own))]
                    contents += own
                    combined.append(size)
            if len(contents) == len(sizes):
                return
            made.contents, sizes = contents, combined

    def _pieces(self, made: GroupDraft, start: int, end: int) -> list[list[int]]:
        """The places of a stretch of contents, in lists of what hangs together: all of them in a
        repeat, whose rounds are alike."""
        places = range(start, end)
        if made.kind == "repeat":
            return [list(places)]
        apart = self._connected(made.contents[start:end], end - start)
        return [[start + place for place in sorted(one)] for one in apart]


def _short(function: str) -> str:
    """Its name without that of the function in which it is defined."""
    return function.rpartition("<locals>.")[2]


def _shortened(steps: list[str]) -> str:
    """The steps joined, with those in the middle left out when they are too long together."""
    text = " → ".join(steps)
    if len(text) <= _LABEL_LENGTH or len(steps) < 3:
        return text
    return f"{steps[0]} → … → {steps[-1]}"
