"""What is said of data that is used for something else than it is, and of losses that are given
what they are not made for."""

from __future__ import annotations

from gradscope.diagnose._said import Words

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
    "fraction lost": Words(
        "{this} makes whole numbers of fractions, and next to nothing is left of them.",
        "{0} % of the sum of their sizes is lost, and the result is used{other}",
        "A cast to a dtype of integers cuts off what stands behind the point: all between -1 and 1 "
        "becomes 0, and so does the term of the loss that it weighs.",
        "Keep the numbers in floating point: `.float()`, or `.to(prediction.dtype)`; give only the "
        "indices a dtype of integers.",
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
    "padding taken": Words(
        "{this} takes a position that is padding for most sequences.",
        "padding for {0} of {1} samples",
        "Beyond its end a sequence is filled with a constant. Those samples send no gradient back, "
        "and look the same to what comes after.",
        "Take each at its own end: `states[torch.arange(len(lengths)), lengths - 1]`, or the "
        "final state that the network returns.",
    ),
    "padding row": Words(
        "{this} has a row for padding that samples are looked up in.",
        "row {2}, for {0} of {1} samples{other}; it is not zero",
        "The row of `padding_idx` gets no gradient: it stays as it was drawn.",
        "Leave `padding_idx` out, or number what is real from 1 on.",
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
    "target shifted": Words(
        "The targets of {this} are {0} tokens on, and not the next ones.",
        "nearly every target is the token that stands {0} places behind the one that tells it",
        "The labels were shifted twice: once with the input, and once more before the loss. The "
        "model learns to leave out a token.",
        "Shift once. A loss that shifts by itself takes the input itself for labels.",
    ),
    "target unshifted": Words(
        "The targets of {this} are the very tokens that the model is given.",
        "nearly every target is the token at its own place, and none is replaced",
        "A model that sees its target has only to repeat it.",
        "To train it to tell the next token, compare `logits[:, :-1]` with `tokens[:, 1:]`.",
        severity="information",
    ),
    "next seen": Words(
        "{this} lets each token see the next one, which is its target.",
        "nearly all of {0} positions take in the one after them; the loss wants that token of them",
        "What is to be told is there to be copied: the loss goes down to almost zero, and the "
        "model can tell nothing where the next token is not there yet.",
        "Leave out what comes later: `is_causal=True`, a mask of `torch.triu(..., 1)`, or a "
        "recurrent network in one direction.",
    ),
    "no probability": Words(
        "{this} is the overlap of a mask with what are no probabilities.",
        "some are below 0 or above 1; divided by the sum of both{other}",
        "2 * overlap / (sum of both) lies between 0 and 1 only for numbers that do so themselves. "
        "Of scores the sum below may be near zero or negative, and the loss may go anywhere.",
        "Take `torch.sigmoid(scores)`, or a softmax over the classes, before.",
    ),
    "averaged first": Words(
        "{this} is made one number before it is weighted by itself.",
        "one number for {0} targets; one weight is computed of it, and multiplied with it",
        "A focal loss gives each element a weight of its own, so that easy ones count less. Of the "
        "mean there is one weight for all: it only changes the learning rate.",
        "Ask for `reduction='none'`, and take the mean after the product.",
    ),
    "blank told": Words(
        "The targets of {this} hold the blank.",
        "{0} of {1} targets are {2}, which is the blank's number",
        "The blank stands between the symbols and is none of them: what its number means is never "
        "learned, and the loss of such a target is meaningless.",
        "Number the symbols from 1 on where `blank=0`, or give the blank a number of its own.",
    ),
}
