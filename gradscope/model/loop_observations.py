"""What was seen of the training loop and of what it learns; a part of the Observations.

Those who watch the loop fill these records in while the program runs; then a place is a number of
:class:`~gradscope.recording.places.Places`, -1 where none is known.  As a part of Observations it
indexes ``graph.origins``, and is None where none is known.
"""

from __future__ import annotations

from typing import Literal

from gradscope.model.plain import Number, Place, Record

MistakeKind = Literal[
    "dropped",
    "step too soon",
    "clip unused",
    "clip elsewhere",
    "clip scaled",
    "stale graph",
    "stale part",
    "step alone",
    "clip empty",
]
"""What was out of order: gradients dropped before a step; a step that finds none, between a forward
pass and its backward; clipping that finds no gradient which a step will use, though there may be
others that one will, or one that a GradScaler still has to divide; a step between a forward pass
and its backward, or between a part of the pass and that; a step without any backward; clipping of
what a generator gives that has been gone through before."""


class MistakenCall(Record):
    """Calls of a training loop at ``origin``, so many ``times``, that are out of order with the one
    at ``other``, and about so many ``parameters``, at most; ``fine`` is how often the call was
    where it belongs.
    """

    kind: MistakeKind
    origin: Place
    times: int = 1
    parameters: int = 0
    other: Place = None
    fine: int = 0


class StepEffect(Record):
    """What the steps of one place changed of a sample of parameters, in half precision or at a tiny
    rate: ``asked`` elements had a gradient, and ``still`` of these stayed as they were, in
    ``looks`` steps.  ``cast`` is where the program gave the parameters that precision, or made the
    optimizer where the rate is what is too small."""

    origin: Place
    dtype: str
    looks: int = 0
    asked: int = 0
    still: int = 0
    cast: Place = None


class SpoiltParameter(Record):
    """A parameter that a step made NaN or infinite: how many of its ``count`` elements, and the
    2-norm of the finite gradient it had, where that was still there.  ``leaf`` indexes
    ``graph.leaves`` when backward can reach it."""

    name: str
    leaf: int | None
    dtype: str
    nan: int
    inf: int
    count: int
    gradient: Number | None = None


class Setting(Record):
    """A setting of an optimizer; ``is_zero``: in the dtype of the parameter it is rounded to 0."""

    name: str
    value: Number
    is_zero: bool = False


class SpoilingStep(Record):
    """A step of an optimizer that made NaN or infinity of finite parameters and finite gradients.

    ``origin`` is where it stepped, ``made`` where the optimizer was made, ``call`` the number of
    the backward call before.
    """

    optimizer: str
    origin: Place
    made: Place
    call: int
    parameters: tuple[SpoiltParameter, ...] = ()
    settings: tuple[Setting, ...] = ()
