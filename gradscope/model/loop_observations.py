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
    "stale cast",
    "step alone",
    "step again",
    "scheduler first",
    "scheduler early",
    "optimizer anew",
    "scaler anew",
    "scheduler anew",
    "step shared",
    "losses dropped",
    "put back",
    "closure alone",
    "closure stale",
    "optimizer idle",
    "optimizer mistaken",
    "clip early",
    "clip empty",
]
"""What was out of order: gradients dropped before a step (all, or some of them); clipping that
finds no gradient which a step will use, or one that a GradScaler still has to divide; a step
between a forward pass and its backward, or between a part of the pass and that; one inside of a
region of autocast that has cast the parameters before it, and does not cast them again; a step
without any backward; a second one with the same gradients; a scheduler between backward and step,
or before all steps; an optimizer, a GradScaler or a scheduler made anew, after so many uses
(``parameters``) of the one before, for the same parameters; a step with gradients that another
optimizer has used; backward of the last loss of a loop, made at ``beside``, after so many others;
parameters put back to what they were, or to random numbers, after at most so many steps;
an optimizer made at ``beside`` that never steps, though backward calls at ``origin`` bring
gradients to what only it holds, or though a step of another one at ``origin`` comes after each of
these (``fine``: they bring others one as well, and so many calls only those); clipping before a
backward call at ``beside`` adds to what was clipped; clipping of what a generator gives that has
been gone through before."""


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


class FallingRate(Struct, frozen=True):
    """The learning rate of steps at ``origin`` that ended at next to nothing: below a millionth of
    the ``highest``, at ``last``, in the last ``low`` of all ``steps``; that of ``groups`` of the
    optimizer's ``of`` groups.

    ``scheduler`` is where a scheduler was called, and ``made`` where that was made.  Where there is
    none, ``set_by`` are the lines that may have set the rate.  ``fallen``: the step before these
    was made with the highest rate.  ``loaded`` is where a state was loaded, since which all were.
    """

    origin: int | None
    scheduler: int | None
    highest: Number
    last: Number
    steps: int
    low: int
    groups: int = 1
    of: int = 1
    made: int | None = None
    set_by: tuple[int, ...] = ()
    fallen: bool = False
    loaded: int | None = None


class ScheduleUse(Struct, frozen=True):
    """A scheduler that was made at ``origin`` for ``length`` calls (0 where it tells none), and was
    called so often, at ``called`` last; ``mode`` is that of one that is given a number.

    Since it was made its optimizer has made so many ``steps``, with so many ``backwards`` before
    them, and a DataLoader was gone through, with steps, in so many ``epochs``.  ``between``: the
    fewest and the most steps between two calls, ``each``: the calls between two steps
    that no installed package makes.  ``shared``: others of the optimizer were called.
    """

    origin: int | None
    called: int | None
    kind: str
    length: int = 0
    mode: str = ""
    calls: int = 0
    steps: int = 0
    backwards: int = 0
    epochs: int = 0
    between: tuple[int, int] = (0, 0)
    each: tuple[int, int] = (0, 0)
    shared: bool = False


class SummedGradients(Struct, frozen=True):
    """Several backward calls from one place (``origin``) before each step at ``stepped``: fewest
    and most, in how many steps.

    ``clipped`` is where their sum was.  ``same_loop``: backward and step stand in one loop, so that
    each call is a part of a batch, rather than a task of its own.  ``means``: each of their losses
    was the mean of what it was computed of.  ``lengths``: how many before each of the first steps;
    ``clips``: whether their sum was clipped, where all were steps of one optimizer.  ``left`` calls
    came after the last step.  ``guard`` is an ``if`` around the step that asks for a remainder, and
    ``rest``: one that is not 0.
    """

    origin: int | None
    stepped: int | None
    fewest: int
    most: int
    steps: int
    clipped: int | None = None
    same_loop: bool = False
    means: bool = False
    lengths: tuple[int, ...] = ()
    clips: tuple[bool, ...] = ()
    left: int = 0
    guard: int | None = None
    rest: bool = False


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


class MaskedMove(Struct, frozen=True):
    """Elements of gradients that the program sets to zero at ``origin``, and that steps at
    ``stepped`` changed all the same, in so many ``steps``: at most ``elements`` of ``masked``."""

    origin: int | None
    stepped: int | None
    steps: int
    elements: int
    masked: int


class Overwrite(Struct, frozen=True):
    """Parameters of an optimizer (``drawn``) that the program draws, at ``origin``, towards others
    that never change (``towards``), after so many steps (``times``) of all (``steps``)."""

    origin: int | None
    times: int
    steps: int
    drawn: tuple[str, ...] = ()
    towards: tuple[str, ...] = ()


class MovingStatistics(Struct, frozen=True):
    """A batch norm whose running statistics moved (in so many calls that were heard) while its
    weight did not require grad; ``evaluated`` is where the program had put a module around it in
    eval mode.  ``learns``: the weight does, and it was this batch norm itself that was put so."""

    name: str
    origin: int | None
    times: int = 1
    evaluated: int | None = None
    learns: bool = False


class SharedObject(Struct, frozen=True):
    """Two ``names`` of one thing of which the program makes the one from the other at ``origin``;
    ``given`` is where it got its second name.  ``is_state``: the state that is loaded is the
    module's own, and was taken at ``given``."""

    names: tuple[str, str]
    origin: int | None
    given: int | None = None
    is_state: bool = False


class ReplacedModel(Struct, frozen=True):
    """A copy, or a new model, made at ``origin`` that took the place of one whose optimizer had
    stepped, and steps on at ``stepped``, in vain so many ``times``: what gets the gradients is in
    none."""

    origin: int | None
    stepped: int | None
    times: int


class AlikeUnits(Struct, frozen=True):
    """A weight all of whose ``units`` were equal and got equal gradients, before it changed and
    after; ``origin`` set it, as far as that was seen, or uses it."""

    name: str
    units: int
    origin: int | None
    leaf: int | None = None


class LimitedParameter(Struct, frozen=True):
    """A parameter of which ``beyond`` of its ``count`` elements lie beyond the limits of a clamp,
    at ``origin``, and had no gradient in several looks in a row."""

    name: str
    beyond: int
    count: int
    origin: int | None


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
