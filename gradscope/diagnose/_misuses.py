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
}
