"""Rules about calls that torch takes as they are, and that mean something else than they were
written for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from gradscope.model.observations import Oddity, OddityKind, Severity
from gradscope.rules.facts import Facts, FindingDraft

FEWEST_MIXED = 2
"""Calls that mix second derivatives, before anything is said of them."""


class _Words(NamedTuple):
    """What is said of one, with its expression, figures and names filled in; it is told from so
    many times on (``fewest``).  ``is_named``: it is about what its name says, and not about the
    variable that the expression is assigned to."""

    message: str
    evidence: str
    why: str
    remedy: str
    severity: Severity = "warning"
    fewest: int = 1
    is_named: bool = False


_KL = (
    "kl_div is the sum of target * (log target - input), with an input of log-probabilities. With "
    "anything else it is no divergence: it may be below 0, and its gradient is not 0 where the two "
    "distributions are the same."
)
_AGAIN = (
    "Backward drops other elements than forward did: the gradient belongs to another function than "
    "the one whose loss was computed."
)
_DROPPED = "{this} changes nothing: it gives a new tensor, which is dropped at once."
_IN_PLACE = "Call `{name}_`, with an underscore, which works in place; or assign what it gives."

_WORDS: dict[str, _Words] = {
    "mixed derivatives": _Words(
        "{this} adds mixed derivatives to the second derivatives.",
        "a gradient of {0} columns is differentiated by the same tensor, all columns at once; "
        "{times} times",
        "Started with ones, grad sums over what it starts from: column i of the result is the "
        "derivative of the sum of all columns by x_i, u_xx + u_xy where u_xx was meant.",
        "Take one column at a time: `torch.autograd.grad(u_x[:, 0].sum(), x, "
        "create_graph=True)[0][:, 0]`; or `torch.func.hessian` under vmap.",
        fewest=FEWEST_MIXED,
    ),
    "index repeated": _Words(
        "The assignment at {this} keeps one of the sums that go to the same element.",
        "{0:,} of {1:,} elements are written to where another one is written as well",
        "Python reads all elements that the index names, adds to each copy, and assigns the "
        "copies: of several for one element one stays. What the others have added is lost, and "
        "backward gives it a gradient as if it were not.",
        "Add them up: `out.index_add_(0, index, values)`, `scatter_add_`, or "
        "`out.index_put_((index,), values, accumulate=True)`.",
    ),
    "weight learns": _Words(
        "{this} multiplies the log-probability of a sample by what has a gradient itself.",
        "a step used a gradient that the weight sends to what it was computed from: {0} parameters",
        "In a policy gradient the weight is a number: a return, a reward or an advantage. Where it "
        "has history, what computes it is trained to weigh likely samples otherwise.",
        "Detach it: `advantage = (returns - values).detach()`.",
    ),
    "own value": _Words(
        "{this} compares a straight-through value with what it is made of.",
        "the value is `x + (q - x).detach()`, the other is x without its history{other}",
        "As a number it is the distance from q to x; but all of the gradient goes to x, away from "
        "q, and what made q, a codebook, gets none.",
        "Compare q itself: `mse_loss(q, x.detach())`.",
    ),
    "input no log": _Words(
        "{this} takes log-probabilities as its input, and is given probabilities.",
        "none is below 0, and they add up to 1 along dimension {0}",
        _KL,
        "Give it the `log_softmax` of the scores, not their `softmax`.",
    ),
    "target no log": _Words(
        "{this} takes log-probabilities as its target, and is given probabilities.",
        "none is below 0, and they add up to 1 along dimension {0}",
        _KL,
        "Leave `log_target=True` out, or give it the `log_softmax` of the target's scores.",
    ),
    "target log": _Words(
        "{this} takes probabilities as its target, and is given log-probabilities.",
        "none is above 0, and their exponentials add up to 1 along dimension {0}",
        _KL,
        "Say `log_target=True`, or give it the `softmax` of the target's scores.",
    ),
    "gradient dropped": _Words(
        _DROPPED,
        "`{name}` is given a gradient, and nothing takes its result",
        "The gradient stays as it was, and the step uses it so.",
        _IN_PLACE,
    ),
    "parameter dropped": _Words(
        _DROPPED,
        "`{name}` is given a parameter, and nothing takes its result",
        "The parameter stays as it was.",
        _IN_PLACE,
    ),
    "history dropped": _Words(
        _DROPPED,
        "`{name}` is given a result with history, and nothing takes its result",
        "The result keeps its history, and takes it into whatever it goes into next.",
        "Assign what it gives: `h = h.detach()`.",
    ),
    "none yet": _Words(
        "{name}.grad is None: no backward call has been made yet.",
        "read at {this}, where the program ended",
        "backward fills .grad; before the first call it is None.",
        "Use gradients after `loss.backward()`.",
        severity="error",
        is_named=True,
    ),
    "none left": _Words(
        "{name}.grad is None: what backward had brought was dropped before it was read.",
        "read at {this}, where the program ended; zeroed before{other}",
        "`zero_grad` sets .grad to None, unless it is told `set_to_none=False`.",
        "Use gradients between `loss.backward()` and `optimizer.zero_grad()`.",
        severity="error",
        is_named=True,
    ),
    "none since": _Words(
        "{name}.grad is None: the last backward call has brought it no gradient.",
        "read at {this}, where the program ended; zeroed before{other}",
        "Only leaves that the loss depends on get a gradient, and `zero_grad` has set the one that "
        "it had to None.",
        "Leave out those whose .grad is None; or let each loss depend on it.",
        severity="error",
        is_named=True,
    ),
    "none brought": _Words(
        "{name}.grad is None: no backward call has brought it a gradient.",
        "read at {this}, where the program ended",
        "Only leaves that the loss depends on get a gradient.",
        "Use it in the forward pass, itself and not a copy; `gradscope backward` shows what the "
        "loss depends on.",
        severity="error",
        is_named=True,
    ),
    "state not kept": _Words(
        "The checkpoint computes its function again with other random numbers.",
        "preserve_rng_state=False, and dropout inside{other}",
        _AGAIN,
        "Leave `preserve_rng_state=False` out.",
    ),
    "other numbers": _Words(
        "{name} computes its function again in backward, with other random numbers.",
        "dropout inside{other}; neither forward nor backward of {name} keeps a random state",
        _AGAIN,
        "Keep `torch.get_rng_state()` (and that of the device) in forward, and set it again in "
        "backward, inside `torch.random.fork_rng()`; or use torch.utils.checkpoint.",
    ),
}


def looking_for(*kinds: OddityKind) -> Callable[[Facts], Iterable[FindingDraft]]:
    """The rule about these: one finding a line."""

    def check(facts: Facts) -> Iterable[FindingDraft]:
        told: set[tuple[str, int] | None] = set()
        for entry in facts.seen.oddities:
            if entry.kind in kinds and entry.times >= _WORDS[entry.kind].fewest:
                at = facts.location(entry.origin)
                line = (at.file, at.line) if at else None
                if line not in told:
                    told.add(line)
                    yield _finding(facts, entry)

    return check


def _finding(facts: Facts, entry: Oddity) -> FindingDraft:
    words = _WORDS[entry.kind]
    beside = facts.location(entry.other)
    named = {
        "this": facts.expression(entry.origin) or "This",
        "name": entry.name,
        "times": f"{entry.times:,}",
        "other": facts.at(entry.other),
    }
    return facts.finding(
        words.severity,
        words.message.format(*entry.figures, **named),
        next((n.id for n in facts.graph.nodes if n.origin == entry.origin), None),
        location=facts.location(entry.origin),
        subject=entry.name if words.is_named else facts.variable(entry.origin),
        evidence=words.evidence.format(*entry.figures, **named),
        why=words.why,
        remedy=words.remedy.format(**named),
        explains=beside if entry.kind == "own value" else None,
        fails=words.severity == "error",
    )
