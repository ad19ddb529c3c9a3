"""What is said of states of a model that are not what they were meant to be: numbers that were to
be loaded or drawn, a network that is to follow another one, a mode.

Of each kind: the message, the evidence, why it matters, and a remedy.
"""

from __future__ import annotations

from gradscope.model.observations import OddityKind

STATES: dict[OddityKind, tuple[str, str, str, str]] = {
    "load matched nothing": (
        "{this} loads nothing: no key of the state is one of the module.",
        "{0:,} keys, such as {name}",
        "With strict=False torch passes over what does not match, and the result, which names it, "
        "is dropped: the module stays as it was drawn.",
        "Rename the keys, or take the part of the file that holds the state; and look at what "
        "`load_state_dict` returns, or leave strict=False out.",
    ),
    "load own": (
        "{this} loads the module's own tensors: it changes nothing.",
        "all of the {0:,} parameters given are those that the module had before",
        "What was read from elsewhere has not come into the state: its keys match none, or the "
        "values were taken from the wrong dictionary.",
        "Take the values from what was read: `{{k: v for k, v in loaded.items() if k in own}}`; "
        "and look whether any key is left.",
    ),
    "load drawn": (
        "{this} initialises again what has just been loaded.",
        "{0:,} of {1:,} weights loaded{other}, before anything used them",
        "The numbers that were loaded are gone: training begins from random ones.",
        "Initialise first and load after that.",
    ),
    "fills nothing": (
        "{this} changes nothing: the function initialises none of the layers.",
        "applied to {0:,} modules; of those with weights each is a {name}",
        "Each layer keeps the numbers that it was made with: no test in the function is true for "
        "any of them.",
        "Test for the classes that the model has.",
    ),
    "eval missing": (
        "The model is evaluated in train mode: `eval()` is never called.",
        "dropouts and batch norms in train mode, in what runs without history here: {0:,}",
        "Dropout drops, so that each evaluation gives other numbers, and worse ones; a batch norm "
        "uses the statistics of the batch, and changes its running ones by data that is there to "
        "evaluate.",
        "Call `model.eval()` before the evaluation and `model.train()` after it.",
    ),
    "dropout lost": (
        "{name} is 0 since an evaluation has set it to 0: dropout is over.",
        "above 0 before, and 0 at the step in train mode that came after the evaluation",
        "An attribute of a module stays as it was set, in train mode as well.",
        "Leave the attribute alone, and take the rate as `self.rate if self.training else 0.0` "
        "where it is used; or use an nn.Dropout, which asks for the mode itself.",
    ),
    "part left behind": (
        "The update leaves {name} out, which should follow what is learned.",
        "parameters that forward uses and that are never written to: {0:,}; others of their "
        "network are, after {times} steps",
        "What a step has learned in one part is used with the beginnings of the other.",
        "Update all parts: go through the parameters of the whole network, its heads as well.",
    ),
    "statistics left behind": (
        "The parameters follow what is learned, and the running statistics do not.",
        "batch norms in eval mode with mean 0 and variance 1, as at the start: {0:,}; their "
        "weights were updated after {times} steps",
        "Running statistics are buffers, which `parameters()` does not give; in eval mode a batch "
        "norm normalises by them.",
        "Copy the buffers as well: `for b, own in zip(average.buffers(), model.buffers()): "
        "b.copy_(own)`; torch's AveragedModel does so.",
    ),
    "updates lost": (
        "{this} updates parameters that no module holds any more.",
        "{0:,} parameters, after {times} steps; those of the same shapes that forward uses without "
        "a gradient are never changed",
        "The module has got others since: its parameters, or all of it, were made or loaded anew.",
        "Take the parameters from the module where they are updated: `target.parameters()`.",
    ),
}
