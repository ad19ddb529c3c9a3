"""Evaluations in train mode: a model that is trained runs without history over what is there to
evaluate, with dropout or batch norms in train mode, and is never put in eval mode.

A pass without history may be many things (a target, a sample, an attack), so only those are told
that the program itself calls an evaluation, by the name of a function, a loader or a variable.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from torch import nn

from gradscope.analyses.doctor.switches import Switch
from gradscope.analyses.training.tracked_parameters import TrackedParameters
from gradscope.autograd.tensors import TensorRef, TensorTable
from gradscope.recording.modules import OUTSIDE
from gradscope.recording.places import frames_from
from gradscope.recording.recorder import Recorder
from gradscope.recording.source import Site
from gradscope.recording.wrappers import parameters_in

MAX_PARAMETERS = 200_000
"""Parameters of what was put in eval mode that are remembered."""

LOOKS = 5
"""Passes of each place that are looked at."""

CALLERS = 4
"""Frames around a pass whose lines are read."""

_SURE = re.compile(
    r"(test|eval|evaluat(e|ion|ing)|validat(e|ion|ing)|heldout|holdout)"
    r"|(test|valid|val|eval|dev)(loader|set|data|dl|ds|iter|epoch|step|x|images|inputs)"
)
_HALF = re.compile(r"val|valid|dev")
_DATA = re.compile(
    r"loader|dl|ds|set|data|dataset|iter|batch|batches|x|inputs|images|loss|acc|epoch|step"
)
_MEANT = re.compile(
    r"\.train\(|dropout|monte|uncertain|bayes|stochastic|ensemble|calibrat|update_bn", re.IGNORECASE
)


class KnownEvaluation(NamedTuple):
    """A model that was evaluated: how many of its parts behave otherwise in train mode, and its
    parameters."""

    parts: int
    parameters: list[TensorRef]


class Evaluations:
    """Such passes, ``known`` by the place that switches history off."""

    def __init__(self, recorder: Recorder, learners: TrackedParameters) -> None:
        self.known: dict[int, KnownEvaluation] = {}
        self._recorder = recorder
        self._learners = learners
        self._in_eval: TensorTable[bool] = TensorTable(MAX_PARAMETERS)
        self._calls = 0
        self._looks: dict[int, int] = {}

    def note_eval(self, module: nn.Module) -> None:
        """The program puts a module in eval mode: what it is a part of, and its own parts, too."""
        for parameter in parameters_in(module):
            self._in_eval[parameter] = True
        for place, known in list(self.known.items()):
            if any(one() in self._in_eval for one in known.parameters):
                del self.known[place]

    def note(self, switch: Switch) -> None:
        """The recording of history was as this switch has made it until now."""
        modules, first = self._recorder.modules, self._calls
        self._calls = modules.calls
        looks = self._looks.get(switch.place, 0)
        if switch.place < 0 or switch.within or first == self._calls or looks >= LOOKS:
            return
        place = modules.place(first)
        if place is None or modules.parent(first) != OUTSIDE:
            return
        self._looks[switch.place] = looks + 1
        module = next((one for one, met in modules.met() if met is place), None)
        parts = 0 if module is None or not module.training else _live(module)
        if module is None or not parts or not self._is_trained(module):
            return
        texts = list(self._texts(switch))
        if any(map(_is_evaluation, texts)) and not any(map(_MEANT.search, texts)):
            parameters = list(map(TensorRef, parameters_in(module)))
            self.known[switch.place] = KnownEvaluation(parts, parameters)

    def _is_trained(self, module: nn.Module) -> bool:
        """Whether a module learns, and was never in eval mode."""
        held, own = self._learners.optimizers, list(parameters_in(module))
        is_held = held.any_stepped and any(map(held.is_held, own))
        return is_held and not any(one in self._in_eval for one in own)

    def _texts(self, switch: Switch) -> Iterator[str]:
        """What is written in the block without history, and around it."""
        sources, site = self._recorder.sources, self._recorder.places.site(switch.place)
        if site is not None:
            yield (text := sources.block(site))
            # What also trains is no evaluation as a whole.
            if site.code not in self._learners.optimizers.codes:
                yield "\n".join(
                    [site.code.co_name, *([] if text else sources.lines_of(site.code)[1])]
                )
        for frame in islice(frames_from(sys._getframe(1), self._recorder.places), CALLERS):
            origin = sources.origin(Site(frame.f_code, frame.f_lasti))
            yield f"{origin.variable} {origin.expression}"


def _live(module: nn.Module) -> int:
    """How many parts do something else in train mode."""
    return sum(
        one.training
        and (
            (isinstance(one, nn.modules.dropout._DropoutNd) and one.p > 0)
            or (isinstance(one, nn.modules.batchnorm._BatchNorm) and one.track_running_stats)
        )
        for one in nn.Module.modules(module)
    )


def _is_evaluation(text: str) -> bool:
    for name in re.findall(r"[A-Za-z_]\w*", re.sub(r"#.*", "", text)):
        words = re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower())
        if any(map(_SURE.fullmatch, words)) or all(
            any(map(part.fullmatch, words)) for part in (_HALF, _DATA)
        ):
            return True
    return False
