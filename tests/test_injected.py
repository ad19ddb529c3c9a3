"""The fault injector of the benchmarks: its faults are python, and count by what they do."""

from __future__ import annotations

import ast
from collections.abc import Sequence

import pytest
import torch

from benchmarks import effects
from benchmarks.effects import Effect, Step, Trace
from benchmarks.faults import KINDS, Kind, inject
from tests.clinic.manifest import HEALTHY

SOURCES = [one.program.read_text("utf-8") for one in HEALTHY[::2]]
TREES = [ast.parse(source) for source in SOURCES]


@pytest.mark.long  # of the benchmarks, which few changes touch
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_fault_has_places_and_each_is_a_program_with_a_guilty_line(kind: Kind) -> None:
    places = 0
    for source, tree in zip(SOURCES, TREES, strict=True):
        count = len(list(kind.places(tree)))
        assert kind.right is None or count == len(list(kind.right(tree)))
        if count:
            sick, guilty = inject(source, kind, count - 1)
            compile(sick, "sick.py", "exec")
            assert guilty and max(guilty) <= len(sick.splitlines())
        places += count
    assert places >= 6


def run(*gradients: Sequence[float] | None, moved: bool = True, finite: bool = True) -> Trace:
    """One step with these gradients."""
    tensors = [None if one is None else torch.tensor(one).double() for one in gradients]
    return Trace([[Step(tensors, [moved] * len(tensors))]], 1, finite)


HEALTHY_RUN = run([3.0, 4.0], [0.0, 5.0], [1e-5, 0.0])
EFFECTS: dict[str, tuple[Effect, Trace, bool]] = {
    "none": (effects.lost, run([3.0, 4.0], None, [1e-5, 0.0]), True),
    "zeros": (effects.lost, run([3.0, 4.0], [0.0, 0.0], [1e-5, 0.0]), True),
    "of rounding": (effects.lost, run([3.0, 4.0], [0.0, 5.0], None), False),
    "a part": (effects.partly(0.1), run([3.0, 0.0], [0.0, 5.0], None), True),
    "a whole, not a part": (effects.partly(0.1), run(None, [0.0, 5.0], None), False),
    "a tenth": (effects.changed(0.1), run([3.0, 4.51], [0.0, 5.0], None), True),
    "less": (effects.changed(0.1), run([3.0, 4.49], [0.0, 5.0], None), False),
    "small": (effects.shrunk, run([3.0, 4.0], [0.0, 4.9e-3], None), True),
    "not so small": (effects.shrunk, run([3.0, 4.0], [0.0, 5.1e-3], None), False),
    "large": (effects.grown, run([3.0, 4.0], [0.0, 5.1e3], None), True),
    "not so large": (effects.grown, run([3.0, 4.0], [0.0, 4.9e3], None), False),
    "not finite": (effects.nonfinite, run([3.0], finite=False), True),
    "a step left out": (effects.nonfinite, Trace(), True),
    "finite": (effects.nonfinite, HEALTHY_RUN, False),
    "at rest": (effects.unmoved, run([3.0], moved=False), True),
    "moved": (effects.unmoved, HEALTHY_RUN, False),
    "clipped": (effects.unclipped(7.0), HEALTHY_RUN, True),
    "not clipped": (effects.unclipped(7.1), HEALTHY_RUN, False),
    "failed": (effects.raises("word"), Trace(status=1, said="a word"), True),
    "failed otherwise": (effects.raises("word"), Trace(status=1), False),
    "failed, where it is to be silent": (effects.lost, Trace(status=1), False),
}


@pytest.mark.parametrize("name", EFFECTS)
def test_a_change_is_a_fault_by_its_effect(name: str) -> None:
    effect, sick, is_fault = EFFECTS[name]
    assert effect(HEALTHY_RUN, sick) == is_fault
