"""What a diagnosed run saw besides the graph, and what was found wrong.

Plain data.  Indices point into the tables of the Report's graph.  Of what was seen only the figures
of the examination are saved with the Report; the findings are what is left of the rest.  Who
watches fills the records in while the program runs: then a place is a number of
:class:`~gradscope.recording.places.Places`, -1 where none is known.
"""

from __future__ import annotations

from typing import Any, Literal

from gradscope.escaping import visible
from gradscope.model.plain import (
    AnyPlace,
    BadRows,
    NodeId,
    Number,
    OriginId,
    Place,
    Record,
    SeenRecord,
    Struct,
    TensorInfo,
)
from gradscope.model.studies import CallCheck
from gradscope.words import one_line, without_environment

Severity = Literal["error", "warning", "information"]
"""How sure it is that something is wrong: it is; it very likely is; it may well be meant."""


class Location(Struct, frozen=True):
    """A place in the user's source, for a reader who has nothing but the finding."""

    file: str
    line: int
    expression: str = ""

    def __str__(self) -> str:
        """``model.py:7``; of an installed package the path in it."""
        return f"{without_environment(self.file)}:{self.line}"


class NodeReference(Struct, frozen=True):
    """A node of the graph, with its op spelled out."""

    id: NodeId
    op: str


class Finding(Struct, frozen=True):
    """One root cause: what was seen, what it means, and what to do.

    ``rule`` is a stable code such as GS303 and ``name`` its name.  ``message`` is one sentence;
    ``subject`` the variable, parameter or module it is about; ``evidence`` the numbers it rests on,
    one a line. ``step`` counts the program's backward calls from 1; 0 is before or outside all of
    them.  ``ranks`` are those of several that saw it; empty where all did.
    """

    rule: str
    name: str
    severity: Severity
    message: str
    location: Location | None = None
    node: NodeReference | None = None
    subject: str = ""
    evidence: tuple[str, ...] = ()
    why: str = ""
    remedy: str = ""
    step: int = 0
    ranks: tuple[int, ...] = ()

    def __str__(self) -> str:
        """What it is, where, and what was seen; why, and what to do."""
        where = str(self.location) if self.location else ""
        code = self.location.expression if self.location else ""
        head = [f"{self.rule} {self.name}", self.severity, where, code, self.subject]
        lines = [" · ".join(dict.fromkeys(filter(None, head))), self.message, *self.evidence]
        return "\n".join(
            visible(one_line(line)) for line in (*lines, self.why, self.remedy) if line
        )

    @property
    def cause(self) -> tuple[str, str, str]:
        """What findings of one cause have in common: the rule, the line and the subject."""
        line = str(self.location) if self.location else ""
        return self.rule, line, self.subject


class TrackedParameter(Record):
    """A tensor that the program holds for learning: in a module or in an optimizer.

    ``in_optimizer`` is None when no optimizer was seen. ``leaf`` indexes ``graph.leaves`` when
    backward can reach it. ``used`` is where the forward pass first took it as an operand, ``made``
    where it was made. ``history`` names the op that made a tensor which is not a leaf. ``reached``:
    some watched backward call brought it a gradient, not only the one whose graph this is, and
    ``once``: no more than one did.
    ``waiting``: its optimizer has not stepped yet although others have, so that its turn may come
    later.
    ``loose``: a parameter of a module that was called, but that no other module holds, nor a
    variable at the top of the program: layers in a plain list. ``wanted``: a call of
    torch.autograd.grad failed because it is not in the graph that the call went through.
    ``held_by`` are places of ``Observations.optimizers``; ``held_once`` is the place that made the
    optimizer, where that is gone. ``late``: it was made after all optimizers, and the program does
    not change it by hand. ``thawed``: it was frozen when an optimizer was made, and the program has
    let it learn since, at ``thawed_at``. ``loaded``: the program has copied other numbers into it.
    ``evaluated``: the program has put a module that holds it in eval mode last. ``handled``: the
    program reads its gradient, or changes it by hand. ``root`` numbers the modules that lie in no
    other one. ``size`` is the 2-norm of its values at the end, where other ranks have it as well.
    ``lazy``: its module has seen no input, and it has no shape. ``derived``: a derivative was taken
    of what it went into, which is to be differentiated itself. ``kept``: backward calls brought it
    gradients again and again, and the program does nothing with them. ``written``: it was
    written to between two calls that reached it; None where it was not compared. ``alive``: some
    call brought it a gradient that was not 0.  ``orphan``: an optimizer holds it, and no module in
    sight any more.
    """

    name: str = ""
    tensor: TensorInfo = TensorInfo((), "")
    requires_grad: bool = False
    in_module: bool = False
    in_optimizer: bool | None = None
    leaf: int | None = None
    used: Place = None
    made: Place = None
    initialised: Place = None
    recorded: bool = False
    history: str = ""
    reached: bool = False
    once: bool = False
    waiting: bool = False
    loose: bool = False
    wanted: bool = False
    held_by: tuple[int | None, ...] = ()
    held_once: Place = None
    late: bool = False
    thawed: bool = False
    thawed_at: Place = None
    loaded: bool = False
    evaluated: bool = False
    handled: bool = False
    root: int | None = None
    size: Number | None = None
    lazy: bool = False
    derived: bool = False
    kept: bool = False
    written: bool | None = None
    alive: bool = False
    orphan: bool = False


CutReason = Literal["function", "no_grad", "inference_mode", "checkpoint"]


class Cut(Record, eq=False):
    """A call whose inputs carried gradient history and whose result does not.

    ``leaves`` are the names of the leaves behind its inputs, and ``itself`` tells that these were
    leaves, and nothing computed of them.  ``reason`` tells whether the function itself cuts
    (detach, item, argmax) or the mode it ran under.  ``feeds_graph``: its result went into the
    graph, or (``refused``) to the root of a backward call that failed for want of history; it was
    itself what a call started from (``root``).
    ``switched``: where the program had switched history off (``with torch.no_grad()``,
    ``set_grad_enabled(False)``); ``within`` is the function of torch that did so by itself
    (``Normal.sample``), and ``twin`` its method that keeps history (``rsample``), if it has one.
    ``then`` is what the same line made of the result (``x.detach().numpy()``).  ``summand``: what
    was made from its result is added to a loss that other terms give its history;
    ``scalar``: what was cut was such a number already.  ``inside``: a custom
    Function whose result does have history, and that used these leaves without being given them;
    ``ungiven``: so did this one, and its result has none.  ``partial``: another result of the call
    does have its history, as the values beside the indices of ``topk``.
    """

    origin: Place
    function: str
    reason: CutReason
    leaves: tuple[str, ...] = ()
    feeds_graph: bool = False
    refused: bool = False
    root: bool = False
    itself: bool = False
    switched: Place = None
    then: str = ""
    summand: bool = False
    scalar: bool = False
    within: str = ""
    twin: str = ""
    inside: bool = False
    ungiven: bool = False
    partial: bool = False


class LostTerm(Record):
    """A term of a loss that gave no gradient to anything that the next step changed, though it was
    computed from such parameters (``leaves``), behind ``cut``.

    ``origin`` made the term, None where it is a plain number; ``call`` is the backward call where
    that was first seen, and ``times`` in how many it was.
    """

    cut: Cut
    origin: Place = None
    leaves: tuple[str, ...] = ()
    call: int = 0
    times: int = 1


class Change(Struct, frozen=True):
    """A tensor changed in place after ``node`` had saved it in ``slot``.

    ``silent``: through ``.data`` or ``detach()``, so that torch's version check does not notice.
    """

    node: int
    slot: str
    origin: AnyPlace
    function: str
    silent: bool = False


class Broadcast(Record):
    """An operation between (n, 1) and (n,), or the like, whose result is larger than both
    operands.

    ``reduced``: nothing but operations on single elements, and sums over them, lie between its
    result and a loss.
    """

    origin: Place
    function: str
    shapes: tuple[tuple[int, ...], ...]
    result: tuple[int, ...]
    reduced: bool = False


class Activity(Struct, frozen=True):
    """How much of an activation's output can still pass a gradient.

    ``dead`` is the share of units (last or channel dimension) that are inactive for every sample,
    ``saturated`` the share of elements where the local derivative is below 0.01; for a softmax, of
    rows of which one element has more than 0.99, rows of a single element (or of a single one that
    is not masked) left out.
    """

    node: int
    dead: Number = 0.0
    saturated: Number = 0.0


class Saved(Struct, frozen=True):
    """What a node had saved when its backward turned a finite gradient into a non-finite one.

    ``overflow``: of an element of what a product, a quotient or a power received, and the local
    derivative there, whose product is beyond the largest number of its dtype, the third of these.
    """

    node: int
    slot: str
    minimum: Number
    maximum: Number
    zeros: int
    nan: int
    inf: int
    count: int
    overflow: tuple[Number, Number, Number] | None = None


class Intake(Struct, frozen=True):
    """A tensor without history that already held NaN or infinity when it became an operand.

    ``node`` made the result of the call that took it, ``name`` is a variable that holds it,
    ``made`` where it was made.  ``first`` is the node that the same call made first: all from
    ``node`` to it are of that call, which took the operand as a whole.  ``row``: of the operands
    without history that hold infinity and no NaN, together if there are two, the first row (all but
    the last index) of which every element is -inf.  ``rows`` are its own with NaN or infinity.
    ``positive``: one of its elements is +inf, which no mask holds.  While the program runs, nodes
    are told by their sequence numbers, and ``tensor`` gives the operand, if it still lives,
    ``base`` what that is a view of, or itself.
    """

    node: int
    name: str = ""
    nan: int = 0
    inf: int = 0
    positive: bool = False
    count: int = 0
    made: Place = None
    first: int | None = None
    row: tuple[int, ...] | None = None
    rows: BadRows | None = None
    tensor: Any = None
    base: Any = None


class Freed(Struct, frozen=True):
    """The first node (in backward order) whose saved tensors an earlier backward call, at
    ``origin``, had freed.  ``variable`` is what carries it over from that call's graph, ``stored``
    where it is given that, and ``taken`` where it goes into the graph of the later call."""

    node: int
    origin: AnyPlace = None
    variable: str = ""
    stored: AnyPlace = None
    taken: AnyPlace = None


class Carried(Record):
    """A ``variable`` that is given something at ``origin`` in each step, and keeps the graphs of so
    many ``steps``: as a container of their results, or by the history of the last result, which
    leads through the others."""

    origin: AnyPlace
    variable: str
    steps: int
    is_container: bool = False


class Alteration(Record):
    """Something of the program's that changed a gradient on its way.

    ``function`` is what did it (``register_hook``), ``origin`` where that was called, None where
    that was not seen; ``before`` and ``after`` are norms; ``node`` receives the gradient, where it
    is in the graph.
    """

    origin: Place
    function: str
    node: int | None = None
    before: Number | None = None
    after: Number | None = None


class Step(SeenRecord, frozen=True):
    """One watched backward call: its loss, the norm of all leaf gradients, the size of its graph.

    ``accumulates``: it was ``backward``, not ``torch.autograd.grad``.  ``stepped``: since the call
    before, leaves of this graph were changed in place, as an optimizer or a descent by hand does.
    ``reused``: of those, how many were changed with a gradient that had an old one in it, which had
    been used before.  ``in_closure``: the call was made by a function that the program gave to a
    step.  ``dropped``: how many leaves of this graph had got a gradient in the call before, and
    hold none any more though nothing changed them, nor did the program read the gradient.
    ``looked``: it may have seen it all the same, as by clipping or by a hook.  ``zeroed`` is where
    ``zero_grad`` was called since.
    ``scale``: what a GradScaler had multiplied the loss with; ``loss`` and ``norm`` are divided by
    it.
    """

    number: int
    loss: Number | None = None
    norm: Number | None = None
    nodes: int = 0
    accumulates: bool = True
    stepped: bool = False
    reused: int = 0
    dropped: int = 0
    looked: bool = False
    zeroed: Place = None
    origin: Place = None
    in_closure: bool = False
    scale: Number | None = None


class SkippedSteps(SeenRecord, frozen=True):
    """Of ``steps`` through a GradScaler it left out ``skipped``, because their gradients were not
    finite.

    ``before`` is its scale at the first of them, ``after`` the one after the last.  Backward of
    ``op``, made at ``origin``, was the first to make such a gradient, where that was seen.
    """

    steps: int
    skipped: int
    before: Number
    after: Number
    op: str = ""
    origin: OriginId | None = None


RaiserKind = Literal["Function", "hook", "saved tensor", "operation"]
"""A custom Function; a hook of the program; what unpacks a saved tensor, a checkpoint's too; an
operation of torch."""


class Raiser(Struct, frozen=True):
    """What was running inside a backward call when it raised.

    ``name`` is that of the Function, the hook or the operation.  ``node`` is where, if its graph is
    the one shown; ``made`` is the forward line of that node.  ``registered`` is where the program
    registered the hook; ``raised`` the innermost line of the program that was running.
    """

    kind: RaiserKind
    name: str
    node: int | None = None
    made: AnyPlace = None
    registered: AnyPlace = None
    raised: AnyPlace = None


class Failure(Struct, frozen=True):
    """The exception that ended the program, or that a backward call raised and the program caught.

    ``ended``: the program ended by it.  ``raiser``: who raised it, where a backward call was under
    way.  While the program runs, ``identity`` is the id of the exception, and ``call`` the number
    of the backward call.
    """

    type: str
    message: str
    origin: AnyPlace = None
    in_backward: bool = False
    ended: bool = False
    raiser: Raiser | None = None
    identity: int = 0
    call: int = 0


class Stopped(SeenRecord, frozen=True):
    """Why the doctor ended a program that had not ended by itself: something serious was found, or
    as many backward calls had been watched, or for as many ``seconds``, as was asked; or because
    another ``rank`` wanted to stop.  ``ran_on``: the program was not ended, and went on unwatched.
    """

    by: Literal["finding", "steps", "time", "rank"]
    seconds: Number | None = None
    ran_on: bool = False


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
    """What the steps of one place changed of a sample of parameters in half precision: ``asked``
    elements had a gradient, and ``still`` of these stayed as they were, in ``looks`` steps.
    ``cast`` is where the program gave the parameters that precision."""

    origin: Place
    dtype: str
    looks: int = 0
    asked: int = 0
    still: int = 0
    cast: Place = None


class SpoiltParameter(Record):
    """A parameter that a step made NaN or infinite: how many of its ``count`` elements, and the
    2-norm of the finite gradient it had, where that was still there.  ``tensor`` gives the
    parameter, if it still lives; ``leaf`` indexes ``graph.leaves`` when backward can reach it."""

    name: str
    leaf: int | None
    dtype: str
    nan: int
    inf: int
    count: int
    gradient: Number | None = None
    tensor: Any = None


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


class Watched(SeenRecord, frozen=True):
    """How much of a run a doctor has looked at; what is saved of its observations.

    Of very many ``steps`` only the first and the last are kept.  ``watched`` counts the backward
    calls that were looked at, ``glanced`` those of them that were looked at only briefly.
    ``unseen`` counts the calls that could not be looked at for a fault of gradscope's own;
    ``faults`` says what was missed for such faults.  ``stopped``: the program did not end by
    itself.
    """

    steps: tuple[Step, ...] = ()
    skipped_steps: SkippedSteps | None = None
    watched: int = 0
    glanced: int = 0
    unseen: int = 0
    faults: tuple[str, ...] = ()
    stopped: Stopped | None = None

    def figures(self) -> Watched:
        """What is saved of it."""
        return Watched(*(getattr(self, name) for name in Watched.__struct_fields__))

    @property
    def calls(self) -> int:
        """How many backward calls were looked at."""
        return max(self.watched, len(self.steps) - self.unseen)


class Observations(Watched, frozen=True):
    """What a doctor has seen besides the graph: what its rules ask for while the run is there.

    Only what an :class:`Watched` holds is saved.

    ``optimizers`` are the places that made those that lived at the end.  ``functions`` are the
    calls of custom Functions that were compared with finite differences, one a place.
    ``never_stepped``: the program has ended by itself, and nothing has used a gradient or
    looked at one.  ``zeroed`` is where ``zero_grad`` was called last.  ``averages``: a wrapper of
    torch's puts the gradients of several ranks together.  ``mistaken_calls`` are one a place.
    """

    learners: tuple[TrackedParameter, ...] = ()
    cuts: tuple[Cut, ...] = ()
    lost_terms: tuple[LostTerm, ...] = ()
    changes: tuple[Change, ...] = ()
    broadcasts: tuple[Broadcast, ...] = ()
    activities: tuple[Activity, ...] = ()
    saved: tuple[Saved, ...] = ()
    intakes: tuple[Intake, ...] = ()
    freed: tuple[Freed, ...] = ()
    carried: tuple[Carried, ...] = ()
    alterations: tuple[Alteration, ...] = ()
    optimizers: tuple[int | None, ...] = ()
    spoiling_steps: tuple[SpoilingStep, ...] = ()
    never_stepped: bool = False
    effects: tuple[StepEffect, ...] = ()
    mistaken_calls: tuple[MistakenCall, ...] = ()
    functions: tuple[CallCheck, ...] = ()
    zeroed: int | None = None
    failure: Failure | None = None
    averages: bool = False
