"""What was seen of the training loop and of what it learns; a part of the Observations.

Plain data like the rest of the Report.  ``origin`` and other places index ``graph.origins``.
"""

from __future__ import annotations

from typing import Literal

from gradscope.model.plain import Number, Struct


class WastedGraph(Struct, frozen=True):
    """An edit of a leaf, outside of any graph, by a gradient that has one: ``asked`` is where
    ``torch.autograd.grad`` was called with ``create_graph``.  Nothing went back through it."""

    origin: int | None
    function: str
    asked: int | None = None


OrderKind = Literal[
    "dropped",
    "part dropped",
    "clip unused",
    "clip scaled",
    "stale graph",
    "stale part",
    "step alone",
    "optimizer idle",
    "clip empty",
]
"""What was out of order: gradients dropped before a step (all, or some of them); clipping that
finds no gradient which a step will use, or one that a GradScaler still has to divide; a step
between a forward pass and its backward, or between a part of the pass and that; a step without any
backward; a second one with the same gradients; a scheduler between backward and step, or before all
steps; a step with gradients that another optimizer has used; an optimizer made at ``beside`` that
never steps, though backward calls at ``origin`` bring gradients to what only it holds (``fine``:
they bring others one as well, and so many calls only those); clipping of what a generator
gives that has been gone through before."""


class Disorder(Struct, frozen=True):
    """A call of the training loop at ``origin`` that is out of order with the one at ``beside``.

    ``times`` is how often that was seen, ``fine`` how often the call was where it belongs, and
    ``parameters`` how many it was about, at most.
    """

    kind: OrderKind
    origin: int | None
    beside: int | None = None
    times: int = 1
    fine: int = 0
    parameters: int = 0


class WastedCalls(Struct, frozen=True):
    """A ``zero_grad`` of an optimizer at ``origin`` that has dropped all that so many backward
    calls had brought (``dropped``), while steps at ``stepped`` have applied so many others
    (``applied``).  ``window``: each of these steps had as many, and fewer were always dropped.
    ``behind``: the step stands behind the loop around it, that of an epoch or of the function."""

    origin: int | None
    stepped: int | None
    dropped: int
    applied: int = 0
    window: int = 0
    behind: bool = False


class ScheduleUse(Struct, frozen=True):
    """A scheduler that was made at ``origin``, and ``called`` there last."""

    origin: int | None
    called: int | None = None


class RemadeParameters(Struct, frozen=True):
    """A place that makes parameters, of which none ever got a second gradient: in how many of all
    the backward calls (``calls``) one got its first.  ``stepped``: an optimizer stepped them.
    ``alone``: these calls reached nothing else that had got one before."""

    origin: int | None
    times: int
    calls: int
    stepped: bool = False
    alone: bool = False


class StepEffect(Struct, frozen=True):
    """What the steps of one place changed of a sample of parameters in half precision: ``asked``
    elements had a gradient, and ``still`` of these stayed as they were, in ``looks`` steps.
    ``cast`` is where the program gave the parameters that precision."""

    origin: int | None
    dtype: str
    looks: int
    asked: int
    still: int
    cast: int | None = None


class ReplacedModel(Struct, frozen=True):
    """A copy, or a new model, made at ``origin`` that took the place of one whose optimizer had
    stepped, and steps on at ``stepped``, in vain so many ``times``: what gets the gradients is in
    none."""

    origin: int | None
    stepped: int | None
    times: int


class SpoiltParameter(Struct, frozen=True):
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


class Setting(Struct, frozen=True):
    """A setting of an optimizer; ``is_zero``: in the dtype of the parameter it is rounded to 0."""

    name: str
    value: Number
    is_zero: bool = False


class SpoilingStep(Struct, frozen=True):
    """A step of an optimizer that made NaN or infinity of finite parameters and finite gradients.

    ``origin`` is where it stepped, ``made`` where the optimizer was made, ``call`` the number of
    the backward call before.
    """

    optimizer: str
    origin: int | None
    made: int | None
    call: int
    parameters: tuple[SpoiltParameter, ...] = ()
    settings: tuple[Setting, ...] = ()
