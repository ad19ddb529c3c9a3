"""The values of small forward tensors, as the Report stores them.  Knows nothing of the Report."""

from __future__ import annotations

from collections.abc import Iterator

from gradscope.autograd.elements import is_small
from gradscope.autograd.nodes import NO_SEQUENCE, Walked, leaf_of
from gradscope.autograd.numbers import plain
from gradscope.autograd.summary import flat_values, name_of
from gradscope.model.plain import Number
from gradscope.recording.remembered import RememberedValues

MAX_VALUES = 32_768
"""Elements of small forward tensors whose values are kept, in all."""

Kind = tuple[tuple[int, ...], str]
"""Shape and dtype."""

Values = dict[tuple[int, int], tuple[Kind, tuple[Number, ...]]]
"""By node and output the kind that a tensor had, and its elements."""

Row = tuple[tuple[int, int], Kind, list[float]]
"""The node and the output that a tensor is, its kind then, and its elements."""


def forward_values(walked: Walked, recorded: RememberedValues, keep: int) -> Values:
    """The values of small results and leaves of a walked graph.

    Args:
        walked: the graph.
        recorded: the results that a recorder has kept.
        keep: values of leaves with at most this many elements are kept.
    """
    found: Values = {}
    left = max(MAX_VALUES, keep)
    for key, kind, numbers in _rows(walked, recorded, keep):
        left -= len(numbers)
        if left < 0:
            break
        found[key] = kind, plain(numbers, kind[1] == "float32")
    return found


def _rows(walked: Walked, recorded: RememberedValues, keep: int) -> Iterator[Row]:
    by_sequence = recorded.by_sequence()
    for number, sequence in enumerate(walked.sequences):
        if sequence < NO_SEQUENCE:
            for value in by_sequence.get(sequence, ()):
                kind = value.shape, name_of(value.dtype)
                yield (number, value.output), kind, value.numbers()
            continue
        tensor = leaf_of(walked.nodes[number])
        if tensor is not None and is_small(tensor, keep):
            kind = tuple(tensor.shape), name_of(tensor.dtype)
            yield (number, 0), kind, flat_values(tensor)
