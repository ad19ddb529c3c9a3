"""Why the history is cut at a place, and what to do instead."""

from __future__ import annotations

from gradscope.model.observations import Cut
from gradscope.rules.facts import Facts

_COMPARISONS = (
    "gt greater ge greater_equal lt less le less_equal eq equal ne not_equal isclose allclose"
)

_WORDS = (
    (
        "item float complex index tolist",
        "It turns the tensor into a plain number, and numbers have no history.",
        "Go on with the tensor itself; use `.item()` only for what is printed.",
    ),
    (
        "numpy array",
        "NumPy knows nothing of gradients.",
        "Write that part with torch operations, or as a torch.autograd.Function.",
    ),
    (
        "tensor as_tensor new_tensor",
        "It copies the numbers into a new tensor, which has no history.",
        "Use `torch.stack` or `torch.cat` on the tensors; torch.tensor is for plain data.",
    ),
    (
        "deepcopy",
        "A copy is a new leaf: the gradient stays in the copy, and the original gets none.",
        "Make the inner steps out of place and call the model with the new tensors "
        "(torch.func.functional_call); or hand the copy's gradients back, `p.grad = q.grad`.",
    ),
    (
        "Parameter",
        "A Parameter is a new leaf: it has the numbers of what it is made of, not the history.",
        "Make Parameters in __init__ only; use what is computed in forward as it is "
        "(torch.func.functional_call puts it in the place of a parameter).",
    ),
    (
        "grad",
        "Without create_graph=True the gradients that torch.autograd.grad returns have no history.",
        "Pass `create_graph=True` where a loss is computed from the gradients.",
    ),
    (
        "detach detach_ data Variable",
        "Its result shares the numbers but not the history.",
        "Leave it out where a gradient is wanted; keep it for targets, logging, state that is "
        "carried over, and in `x + (q - x).detach()`, where q needs a loss of its own.",
    ),
    (
        "argmax argmin argsort multinomial bincount topk sort max nonzero searchsorted bucketize",
        "An index has no derivative.",
        "Compute the loss from the scores (cross_entropy takes logits), or use `gumbel_softmax` "
        "for a choice that can be learned.",
    ),
    (
        "all_gather all_gather_into_tensor gather scatter all_to_all all_to_all_single "
        "reduce_scatter reduce_scatter_tensor",
        "It copies numbers from rank to rank, and what it fills has no history.",
        "Put the own part back, `parts[rank] = own`; or call what torch.distributed.nn has for "
        "this, whose backward sends the gradients back.",
    ),
    (
        "to type type_as long int short char byte bool",
        "It gives whole numbers or truth values, and rounds away the small changes that a "
        "gradient measures.",
        "Go on with the floating-point tensor, and convert only what serves as an index, a mask "
        "or a label; to train through a rounding: `x + (x.round() - x).detach()`.",
    ),
    (
        f"{_COMPARISONS} logical_not logical_and logical_or logical_xor any all isnan isinf "
        "isfinite signbit count_nonzero",
        "The result of a comparison is a step: it has no derivative.",
        "Use a smooth gate (sigmoid), or let the gradient pass it: `hard + soft - soft.detach()`.",
    ),
)
"""By the names of functions: why the history ends there, and what to do instead.  `int` and `bool`
are python's, of one number, as well as torch's."""

_BY_FUNCTION = {name: (why, fix) for names, why, fix in _WORDS for name in names.split()}
_ANY_OTHER = (
    "Torch recorded no history for its result.",
    "Write that part with operations that have a derivative; a custom torch.autograd.Function has "
    "to be given what is to learn as an argument.",
)
_NO_ARGUMENT = (
    "Backward of a custom Function returns one gradient for each argument of `apply`; what forward "
    "uses besides these gets none.",
    "Give it to `apply` as an argument, and return its gradient from backward.",
)


_SWITCHED_OFF = (
    "Under torch.no_grad, torch.inference_mode or set_grad_enabled(False) no history is recorded; "
    "set_grad_enabled(False) stays in force until it is switched on again, and inside of "
    "inference_mode enable_grad brings nothing back.",
    "Run this part outside, and use these modes as `with` blocks around evaluation only. If it is "
    "meant to stay frozen, leave its parameters out of the optimizer.",
)
_CHECKPOINT = (
    "With use_reentrant=True no gradient flows unless some input requires grad; the parameters "
    "inside do not count.",
    "Pass use_reentrant=False.",
)
_RECOMPUTED = (
    "A reentrant checkpoint calls its function again in backward, and only what takes part then "
    "gets a gradient. These did not: what the function reads (an attribute, a flag, a cache) was "
    "changed between forward and backward; or inside of it a call cuts the history, or drops the "
    "result.",
    "Hand what changes to the function as an argument, and reset it after backward; or pass "
    "use_reentrant=False, which checks that both calls do the same.",
)
_SAMPLE = "`sample` draws without history: what it was drawn from gets no gradient through it."
_CAN_MOVE = (
    _SAMPLE,
    "Draw with `rsample()`: it moves and scales noise, so that the gradient reaches the parameters "
    "of the distribution. Where the value is only scored, learn from its `log_prob`.",
)
_CANNOT_MOVE = (
    f"{_SAMPLE} This distribution has no `rsample`.",
    "Learn from the probability of what was drawn, `-dist.log_prob(value) * reward`; or draw from "
    "a relaxed distribution (`torch.nn.functional.gumbel_softmax`, RelaxedOneHotCategorical).",
)
_WITHOUT_HISTORY = (
    "This function of torch switches gradients off for what it does itself.",
    "Do the same with operations that record history.",
)


def why_and_remedy(cut: Cut) -> tuple[str, str]:
    """Why nothing of its operands is behind the result, and what to do instead."""
    if cut.reason == "checkpoint":
        return _RECOMPUTED if cut.inside else _CHECKPOINT
    if cut.within.endswith(".sample"):
        return _CAN_MOVE if cut.twin else _CANNOT_MOVE
    if cut.reason != "function":
        return _WITHOUT_HISTORY if cut.within else _SWITCHED_OFF
    if cut.inside or cut.ungiven:
        return _NO_ARGUMENT
    return _BY_FUNCTION.get(cut.then or cut.function, _ANY_OTHER)


def name_of(cut: Cut) -> str:
    """What cuts, for a sentence."""
    if cut.reason == "checkpoint":
        return "a reentrant checkpoint"
    if cut.reason != "function":
        return cut.within or cut.reason
    # Its name may be another than the program's: `a < b` may call `gt` of `b`.
    name = "a comparison" if cut.function in _COMPARISONS.split() else cut.function
    name = f"one result of {name}" if cut.partial else name
    # What the same line made of it, unless that is how it was called.
    return f"{name} (for {cut.then})" if cut.then else name


def place_of(cut: Cut) -> int | None:
    """Where to look: at the line that switched gradients off, not at the code that ran there."""
    # What a function of torch does by itself begins with the line that calls it.
    return cut.origin if cut.switched is None or cut.within else cut.switched


def at_place(facts: Facts, cut: Cut) -> str:
    """Name the place of a cut, to begin a sentence with: ``At `x.item()` ``."""
    place = facts.expression(place_of(cut))
    return f"At {place} " if place else "Here "
