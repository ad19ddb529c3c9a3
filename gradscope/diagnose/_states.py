"""What is said of modules and their states: loaded, initialised, put in a mode, followed."""

from __future__ import annotations

from gradscope.diagnose._said import Words

FEWEST_KEPT = 3
"""Steps in eval mode after an evaluation, before that is told."""

_DROPS = (
    "A function knows nothing of the mode of the module that calls it. Each evaluation leaves out "
    "other elements at random, so that the same input gives something else each time."
)
_AGAIN = (
    "Backward drops other elements than forward did: the gradient belongs to another function than "
    "the one whose loss was computed."
)

STATES: dict[str, Words] = {
    "layer repeated": Words(
        "{0} entries of {name} are one and the same layer.",
        "{1:,} parameters, where {0} layers would have {2:,}",
        "Multiplying a list repeats the object in it and makes no copies: all entries share their "
        "weights, and the gradients of all add up in them.",
        "Make one for each entry: `[Layer(...) for _ in range(n)]`. Where it is meant to be "
        "shared, give the one layer a name and call it several times.",
        is_named=True,
    ),
    "flag ignored": Words(
        "{name} = False freezes nothing: it is an attribute of a Module.",
        "{0} parameters of the module require grad, get gradients, and are in an optimizer",
        "Of a Module this is an attribute like any other, which nobody reads. Only the "
        "`requires_grad` of a tensor counts, and each parameter has its own.",
        "Call the method `requires_grad_(False)` of the module, which goes to all parameters.",
        is_named=True,
    ),
    "eval undone": Words(
        "{this} puts the model in train mode for an evaluation.",
        "put in eval mode{other}, and never run in it; {times} times it then ran in train mode, "
        "without history",
        "In train mode dropout drops, and a batch norm uses the statistics of the batch, and "
        "changes its running ones by data that is there to evaluate.",
        "Leave it out: `model.eval()` before the loop holds for all of it; call `model.train()` "
        "where the next epoch of training begins.",
    ),
    "eval kept": Words(
        "The model stays in eval mode after {this}, and is trained so.",
        "trained in train mode before; {times} steps since, in eval mode{other}",
        "In eval mode dropout drops nothing, and a batch norm uses its running statistics, which "
        "change no more: the model is trained as another one than at first.",
        "Call `model.train()` where training goes on, at the beginning of each epoch or at the end "
        "of the evaluation.",
        fewest=FEWEST_KEPT,
    ),
    "eval missing": Words(
        "The model is evaluated in train mode: `eval()` is never called.",
        "dropouts and batch norms in train mode, in what runs without history here: {0:,}",
        "Dropout drops, so that each evaluation gives other numbers, and worse ones; a batch norm "
        "uses the statistics of the batch, and changes its running ones by data that is there to "
        "evaluate.",
        "Call `model.eval()` before the evaluation and `model.train()` after it.",
    ),
    "dropout kept": Words(
        "{this} drops in eval mode, too.",
        "`training` is not given, and is then True; called in a {name} in eval mode",
        _DROPS,
        "Give it the mode of the module: `F.dropout(x, p, training=self.training)`; or use an "
        "`nn.Dropout`.",
    ),
    "attention drops": Words(
        "{this} drops in eval mode, too.",
        "`dropout_p` is above 0; called in a {name} in eval mode",
        _DROPS,
        "Let the mode of the module decide: `dropout_p=self.p if self.training else 0.0`.",
    ),
    "dropout lost": Words(
        "{name} is 0 since an evaluation has set it to 0: dropout is over.",
        "above 0 before, and 0 at the step in train mode that came after the evaluation",
        "An attribute of a module stays as it was set, in train mode as well.",
        "Leave the attribute alone, and take the rate as `self.rate if self.training else 0.0` "
        "where it is used; or use an nn.Dropout, which asks for the mode itself.",
    ),
    "state not kept": Words(
        "The checkpoint computes its function again with other random numbers.",
        "preserve_rng_state=False, and dropout inside{other}",
        _AGAIN,
        "Leave `preserve_rng_state=False` out.",
    ),
    "other numbers": Words(
        "{name} computes its function again in backward, with other random numbers.",
        "dropout inside{other}; neither forward nor backward of {name} keeps a random state",
        _AGAIN,
        "Keep `torch.get_rng_state()` (and that of the device) in forward, and set it again in "
        "backward, inside `torch.random.fork_rng()`; or use torch.utils.checkpoint.",
    ),
}
