"""What is said of settings that miss what they were meant for: of an optimizer, and of a loss."""

from __future__ import annotations

from gradscope.diagnose._said import Words

FEWEST_SET = 2
"""Steps whose learning rate was set where nobody reads it, before that is told."""

_RATE = "An optimizer takes the rate of each step from its groups, `optimizer.param_groups`."

SETTINGS: dict[str, Words] = {
    "decay swapped": Words(
        "Weight decay goes to biases and norms, and not to the weights of the layers.",
        "{0} vectors are decayed, and {1} matrices are not",
        "What decay is to keep small are the weights of layers; biases and the weights of norms "
        "are what is left out of it.",
        "Swap the two conditions, or the two values of `weight_decay`.",
    ),
    "decay empty": Words(
        "The group of parameters without weight decay is empty.",
        "{0} vectors (biases, weights of norms) and {1} matrices are decayed",
        "Nothing matched the names that are to be left out: a full name is compared with a part of "
        "one, or the names are those of another model.",
        'Ask for a part of the name: `any(part in name for part in ("bias", "norm"))`; or leave '
        "out what has one dimension.",
    ),
    "rate attribute": Words(
        "`{name}` is set on the optimizer, where nothing reads it: the learning rate stays as it "
        "was.",
        "{times} steps{other} with another rate",
        _RATE,
        'Set it in each group: `for group in optimizer.param_groups: group["lr"] = rate`.',
        fewest=FEWEST_SET,
    ),
    "rate of a copy": Words(
        "The learning rate is set in what {this} gives, which is a copy: it stays as it was.",
        "{times} times, and the step{other} was made with another rate",
        _RATE,
        'Set it in the groups themselves: `for group in optimizer.param_groups: group["lr"] = '
        "rate`.",
        fewest=FEWEST_SET,
    ),
}
