"""What a rule of the doctor is: one class in a file of its own, whose docstring is its page."""

from __future__ import annotations

import inspect
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import ClassVar, Literal

from gradscope.rules.facts import Facts, FindingDraft

Agreement = Literal["node", "place", "values", "call", "failure", "step before"]
"""What two findings must have in common for one to make the other superfluous: a node; a place in
the source; that the other is about the numbers of this step, which the one has made worthless; that
they are of one backward call; that both say why the program failed; or that the one was found a
step earlier than the other."""


class Rule(ABC):
    """One thing that can be wrong with a gradient.

    A subclass stands alone in a module ``gradscope/rules/<chapter>/<name>.py``, or in one that an
    entry point ``gradscope.rules`` of another package names.  The docstring of the module is the
    rule's page: a first line with code and name, a paragraph that says in a sentence what is wrong,
    and the sections "How it is recognised", "A program that has it, healed" (a ``diff`` of two
    whole programs) and "When to ignore it".
    """

    code: ClassVar[str]
    """``GS303``; the first digit is that of its chapter."""

    name: ClassVar[str]
    """``history-cut``"""

    before: ClassVar[Mapping[str, Agreement]] = {}
    """The codes of the rules whose findings are a consequence of this one's, each with what the two
    must have in common.  That holds whether or not this finding is shown, and if a third one makes
    it superfluous."""

    @abstractmethod
    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        """The findings of this rule, in any order; code and name are filled in.

        Called several times in a run, each time with what was seen of one backward call; keeps
        nothing from one time to the next.
        """

    @classmethod
    def page(cls) -> str:
        """The rule's page in Markdown, which ends with how to ignore it."""
        told = sys.modules[cls.__module__].__doc__
        left_out = f"{cls.code} {cls.name}\n\nThe page is a docstring, which python -OO leaves out."
        ignored = f"`gradscope doctor --ignore {cls.code}` leaves it out."
        return f"# {inspect.cleandoc(told or left_out)}\n\n{ignored}\n"

    def covers(self, own: FindingDraft, code: str, other: FindingDraft) -> bool:
        """Whether a finding of this rule makes another rule's of the same step superfluous."""
        match self.before.get(code):
            case "node":
                return not set(own.nodes).isdisjoint(other.nodes)
            case "place":
                return other.location == own.location
            case "values":
                return other.of_values
            case "call":
                return own.step == other.step
            case "failure":
                return own.fails and other.fails
        return False
