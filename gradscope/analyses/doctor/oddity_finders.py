"""All who look for oddities."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradscope.analyses.doctor.axes import AxesMixedUp
from gradscope.analyses.doctor.doubled_terms import DoubledTerms
from gradscope.analyses.doctor.dropouts import Dropouts
from gradscope.analyses.doctor.fixed_weights import FixedWeights
from gradscope.analyses.doctor.ignored_values import IgnoredValues
from gradscope.analyses.doctor.interpolations import Interpolations
from gradscope.analyses.doctor.loss_forms import LossForms
from gradscope.analyses.doctor.oddity_finder import FinderContext, OddityFinder
from gradscope.analyses.doctor.paddings import Paddings
from gradscope.analyses.doctor.repeated_indices import RepeatedIndices
from gradscope.analyses.doctor.sample_axes import SampleAxes
from gradscope.analyses.doctor.score_weights import ScoreWeights
from gradscope.analyses.doctor.slopes import Slopes
from gradscope.analyses.doctor.squeezes import Squeezes
from gradscope.analyses.doctor.straight_through import StraightThrough
from gradscope.analyses.doctor.token_targets import TokenTargets

FINDERS: tuple[type[OddityFinder], ...] = (
    RepeatedIndices,
    Slopes,
    ScoreWeights,
    Squeezes,
    Interpolations,
    SampleAxes,
    AxesMixedUp,
    StraightThrough,
    Paddings,
    FixedWeights,
    Dropouts,
    IgnoredValues,
    TokenTargets,
    LossForms,
    DoubledTerms,
)


class OddityFinders:
    """One of each.  Each event is a list of the methods that want to be called."""

    def __init__(self, context: FinderContext) -> None:
        self._all = [kind(context) for kind in FINDERS]
        self.note = self._methods("note")
        self.note_inside = self._methods("note_inside")
        self.look = self._methods("look")
        self.note_backward = self._methods("note_backward")
        self.note_gradients = self._methods("note_gradients")
        self.note_step = self._methods("note_step")
        self.note_failure = self._methods("note_failure")

    def settle(self) -> None:
        """What was counted on a device may be read now."""
        for one in self._all:
            one.settle()

    def _methods(self, event: str) -> list[Callable[..., Any]]:
        usual = getattr(OddityFinder, event)
        return [getattr(one, event) for one in self._all if getattr(type(one), event) is not usual]
