"""What is said of data that is used for something else than it is, and of losses that are given
what they are not made for."""

from __future__ import annotations

from gradscope.diagnose._said import Words

FEWEST_MIXED = 2
"""Calls that mix second derivatives, before anything is said of them."""

FEWEST_ZERO = 2
"""Uses of a factor of zeros, before anything is said of it."""

_NEVER = "No optimizer holds it, and no gradient reaches it: it stays as it was made."
_PARAMETER = "Make it a Parameter: `self.weight = nn.Parameter(...)`."
_KL = (
    "kl_div is the sum of target * (log target - input), with an input of log-probabilities. With "
    "anything else it is no divergence: it may be below 0, and its gradient is not 0 where the two "
    "distributions are the same."
)

MISUSES: dict[str, Words] = {
    "mixed derivatives": Words(
        "{this} adds mixed derivatives to the second derivatives.",
        "a gradient of {0} columns is differentiated by the same tensor, all columns at once; "
        "{times} times",
        "Started with ones, grad sums over what it starts from: column i of the result is the "
        "derivative of the sum of all columns by x_i, u_xx + u_xy where u_xx was meant.",
        "Take one column at a time: `torch.autograd.grad(u_x[:, 0].sum(), x, "
        "create_graph=True)[0][:, 0]`; or `torch.func.hessian` under vmap.",
        fewest=FEWEST_MIXED,
    ),
    "index repeated": Words(
        "The assignment at {this} keeps one of the sums that go to the same element.",
        "{0:,} of {1:,} elements are written to where another one is written as well",
        "Python reads all elements that the index names, adds to each copy, and assigns the "
        "copies: of several for one element one stays. What the others have added is lost, and "
        "backward gives it a gradient as if it were not.",
        "Add them up: `out.index_add_(0, index, values)`, `scatter_add_`, or "
        "`out.index_put_((index,), values, accumulate=True)`.",
    ),
    "weight learns": Words(
        "{this} multiplies the log-probability of a sample by what has a gradient itself.",
        "a step used a gradient that the weight sends to what it was computed from: {0} parameters",
        "In a policy gradient the weight is a number: a return, a reward or an advantage. Where it "
        "has history, what computes it is trained to weigh likely samples otherwise.",
        "Detach it: `advantage = (returns - values).detach()`.",
    ),
    "own value": Words(
        "{this} compares a straight-through value with what it is made of.",
        "the value is `x + (q - x).detach()`, the other is x without its history{other}",
        "As a number it is the distance from q to x; but all of the gradient goes to x, away from "
        "q, and what made q, a codebook, gets none.",
        "Compare q itself: `mse_loss(q, x.detach())`.",
    ),
    "weight drawn": Words(
        "`{name}` is drawn as a weight is, and is no Parameter.",
        "an initialiser of torch.nn.init has drawn it; used{other}",
        _NEVER,
        _PARAMETER,
        is_named=True,
    ),
    "zero factor": Words(
        "`{name}` is zero, and no Parameter: what it is multiplied with is lost.",
        "the same zeros in {times} uses{other}",
        _NEVER,
        _PARAMETER,
        fewest=FEWEST_ZERO,
        is_named=True,
    ),
    "input no log": Words(
        "{this} takes log-probabilities as its input, and is given probabilities.",
        "none is below 0, and they add up to 1 along dimension {0}",
        _KL,
        "Give it the `log_softmax` of the scores, not their `softmax`.",
    ),
    "target no log": Words(
        "{this} takes log-probabilities as its target, and is given probabilities.",
        "none is below 0, and they add up to 1 along dimension {0}",
        _KL,
        "Leave `log_target=True` out, or give it the `log_softmax` of the target's scores.",
    ),
    "target log": Words(
        "{this} takes probabilities as its target, and is given log-probabilities.",
        "none is above 0, and their exponentials add up to 1 along dimension {0}",
        _KL,
        "Say `log_target=True`, or give it the `softmax` of the target's scores.",
    ),
}
