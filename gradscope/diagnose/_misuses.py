"""What is said of data that is used for something else than it is: flags and masks that nothing
reads, targets of another position, numbers that a function does not take."""

from __future__ import annotations

from typing import NamedTuple

from gradscope.model.observations import OddityKind


class Words(NamedTuple):
    """What is said of one, with its expression, figures and names filled in."""

    message: str
    evidence: str
    why: str
    remedy: str


MISUSES: dict[OddityKind, Words] = {
    "end ignored": Words(
        "The target at {this} goes on past the end of an episode: nothing reads `{name}`.",
        "`{name}` holds true and false values, beside a reward and a discounted next value",
        "Behind the last step of an episode there is no next state; the value of whatever stands "
        "in its place is added to the return all the same.",
        "Leave the next value out where the episode has ended: "
        "`reward + gamma * (1 - {name}) * next_value`.",
    ),
    "mask ignored": Words(
        "{this} attends to all positions: nothing reads the mask `{name}`.",
        "`{name}` holds zeros and others, and is given to the function{other}; the attention "
        "leaves nothing out",
        "What is masked, such as padding, has a weight like any other, and gets a share of the "
        "result and of the gradient.",
        "Hand it on: `attn_mask=...`, `key_padding_mask=...`, or "
        "`scores.masked_fill(mask == 0, -math.inf)` before the softmax.",
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
    "next seen": Words(
        "{this} lets each token see the next one, which is its target.",
        "nearly all of {0} positions take in the one after them; the loss wants that token of them",
        "What is to be told is there to be copied: the loss goes down to almost zero, and the "
        "model can tell nothing where the next token is not there yet.",
        "Leave out what comes later: `is_causal=True`, a mask of `torch.triu(..., 1)`, or a "
        "recurrent network in one direction.",
    ),
}
