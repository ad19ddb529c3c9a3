"""Rules about calls that torch takes as they are, and that mean something else than they were
written for: samples put together, a norm of a part, a weight that learns, padding, a constant."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from gradscope.diagnose._axes import AXES
from gradscope.diagnose._facts import Facts, FindingDraft
from gradscope.diagnose._misuses import MISUSES
from gradscope.diagnose._misuses import Words as _Words
from gradscope.diagnose._states import STATES
from gradscope.model.observations import Oddity, OddityKind
from gradscope.words import listed

PADDED = 0.5
"""A position that is padding for more of the samples than this is not the one that was meant."""

LOST = 90
"""A cast that loses so many hundredths of the numbers leaves next to nothing of them."""

FEWEST_ZERO = 2
"""Uses of a factor of zeros, before anything is said of it."""

FEWEST_MIXED = 2
"""Calls that mix second derivatives, before anything is said of them."""

DRAWN = 0.75
"""Of the weights that were loaded so many have to be initialised after that."""

FEWEST_KEPT = 3
"""Steps in eval mode after an evaluation, before that is told."""


FEWEST_SET = 2
"""Steps whose learning rate was set where nobody reads it, before that is told."""


_APART = (
    "What a sample gives then depends on the others in its batch, and its gradient goes to them "
    "as well; alone it gives something else."
)
_DROPS = (
    "A function knows nothing of the mode of the module that calls it. Each evaluation leaves out "
    "other elements at random, so that the same input gives something else each time."
)
_AGAIN = (
    "Backward drops other elements than forward did: the gradient belongs to another function than "
    "the one whose loss was computed."
)
_NEVER = "No optimizer holds it, and no gradient reaches it: it stays as it was made."
_RATE = "An optimizer takes the rate of each step from its groups, `optimizer.param_groups`."
_PARAMETER = "Make it a Parameter: `self.weight = nn.Parameter(...)`."

_DROPPED = "{this} changes nothing: it gives a new tensor, which is dropped at once."
_LOST = "No loss depends on it, and nothing learns from it."
_IN_PLACE = "Call `{name}_`, with an underscore, which works in place; or assign what it gives."
_KL = (
    "kl_div is the sum of target * (log target - input), with an input of log-probabilities. With "
    "anything else it is no divergence: it may be below 0, and its gradient is not 0 where the two "
    "distributions are the same."
)

_WORDS: dict[OddityKind, _Words] = {
    **MISUSES,
    "view": _Words(
        "{this} mixes the samples of the batch.",
        "{0} becomes {1}, and axis {2} of the first counts the samples",
        f"A view keeps the order of the elements in memory. {_APART}",
        "Bring the samples to the front before: `x.transpose(0, 1).reshape(batch, -1)`; or "
        "`torch.cat([x[-2], x[-1]], dim=-1)` for the two directions of a recurrent network.",
    ),
    "fold": _Words(
        "{this} makes one row of the whole batch.",
        "the loss compares the one result with the targets of {0} samples",
        "The samples become features of one another: there is one prediction for all of them, and "
        "broadcasting compares it with each target. The best it can learn is the mean.",
        "Keep the first dimension: `x.flatten(1)`, or `x.view(len(x), -1)`, and a layer of as many "
        "inputs as one sample has.",
    ),
    "last sample": _Words(
        "{this} takes axis {0} for the samples, and the last of them is used as if it were the "
        "last step.",
        "of {1} samples the last is taken{other}; the others get no gradient through it",
        "Without batch_first=True a recurrent network takes [steps, samples, features], with it "
        f"[samples, steps, features]. Given the other, it goes from sample to sample. {_APART}",
        "Where the data is [samples, steps, features], say `batch_first=True` and take "
        "`states[:, -1]`; where it is [steps, samples, features], leave it out and take "
        "`states[-1]`.",
    ),
    "softmax": _Words(
        "{this} is a softmax over the samples of the batch.",
        "the dimension of {0} samples adds up to 1, and each sample is used by itself",
        f"The samples compete with each other. {_APART}",
        "Name the dimension of the classes or positions: `dim=-1`.",
    ),
    "mean": _Words(
        "{this} is the mean over all samples, and is taken off each of them.",
        "the mean of all elements of {0} samples",
        _APART,
        "Name the dimension: `x.mean(dim=1, keepdim=True)`.",
    ),
    "norm of a part": _Words(
        "{this} is the norm of a part of each sample's gradient.",
        "{0} norms for each sample, whose gradient has {1} elements",
        "The score is one number a sample, and its gradient one vector, which is to have the norm "
        "that the penalty asks for. Where each part has it, the whole has more.",
        "Flatten first: `gradient.flatten(1).norm(dim=1)`.",
    ),
    "layer repeated": _Words(
        "{0} entries of {name} are one and the same layer.",
        "{1:,} parameters, where {0} layers would have {2:,}",
        "Multiplying a list repeats the object in it and makes no copies: all entries share their "
        "weights, and the gradients of all add up in them.",
        "Make one for each entry: `[Layer(...) for _ in range(n)]`. Where it is meant to be "
        "shared, give the one layer a name and call it several times.",
    ),
    "eval undone": _Words(
        "{this} puts the model in train mode for an evaluation.",
        "put in eval mode{other}, and never run in it; {times} times it then ran in train mode, "
        "without history",
        "In train mode dropout drops, and a batch norm uses the statistics of the batch, and "
        "changes its running ones by data that is there to evaluate.",
        "Leave it out: `model.eval()` before the loop holds for all of it; call `model.train()` "
        "where the next epoch of training begins.",
    ),
    "eval kept": _Words(
        "The model stays in eval mode after {this}, and is trained so.",
        "trained in train mode before; {times} steps since, in eval mode{other}",
        "In eval mode dropout drops nothing, and a batch norm uses its running statistics, which "
        "change no more: the model is trained as another one than at first.",
        "Call `model.train()` where training goes on, at the beginning of each epoch or at the end "
        "of the evaluation.",
    ),
    "dropout kept": _Words(
        "{this} drops in eval mode, too.",
        "`training` is not given, and is then True; called in a {name} in eval mode",
        _DROPS,
        "Give it the mode of the module: `F.dropout(x, p, training=self.training)`; or use an "
        "`nn.Dropout`.",
    ),
    "attention drops": _Words(
        "{this} drops in eval mode, too.",
        "`dropout_p` is above 0; called in a {name} in eval mode",
        _DROPS,
        "Let the mode of the module decide: `dropout_p=self.p if self.training else 0.0`.",
    ),
    "state unread": _Words(
        "The model is loaded from this file, and the state of its optimizer is not.",
        "`{name}` in the file is the state of an optimizer like the one that steps{other}, which "
        "begins without any",
        "Momentum and the running means of Adam begin anew, and the learning rate is the one that "
        "the optimizer was made with, not the one that the training had come to.",
        'Load it as well, before the first step: `optimizer.load_state_dict(saved["{name}"])`.',
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
    "flag ignored": _Words(
        "{name}.requires_grad = False freezes nothing: {name} is a Module.",
        "{0} of its parameters require grad, get gradients, and are in an optimizer",
        "Of a Module `requires_grad` is an attribute like any other, which nobody reads. Only that "
        "of a tensor counts, and its parameters have their own.",
        "Call `{name}.requires_grad_(False)`, with an underscore, which goes to all parameters.",
    ),
    "fraction lost": _Words(
        "{this} makes whole numbers of fractions, and next to nothing is left of them.",
        "{0} % of the sum of their sizes is lost, and the result is used{other}",
        "A cast to a dtype of integers cuts off what stands behind the point: all between -1 and 1 "
        "becomes 0, and so does the term of the loss that it weighs.",
        "Keep the numbers in floating point: `.float()`, or `.to(prediction.dtype)`; give only the "
        "indices a dtype of integers.",
    ),
    "weight learns": _Words(
        "{this} multiplies the log-probability of a sample by what has a gradient itself.",
        "a step used a gradient that the weight sends to what it was computed from: {0} parameters",
        "In a policy gradient the weight is a number: a return, a reward or an advantage. Where it "
        "has history, what computes it is trained to weigh likely samples otherwise.",
        "Detach it: `advantage = (returns - values).detach()`.",
    ),
    "decay swapped": _Words(
        "Weight decay goes to biases and norms, and not to the weights of the layers.",
        "{0} vectors are decayed, and {1} matrices are not",
        "What decay is to keep small are the weights of layers; biases and the weights of norms "
        "are what is left out of it.",
        "Swap the two conditions, or the two values of `weight_decay`.",
    ),
    "decay empty": _Words(
        "The group of parameters without weight decay is empty.",
        "{0} vectors (biases, weights of norms) and {1} matrices are decayed",
        "Nothing matched the names that are to be left out: a full name is compared with a part of "
        "one, or the names are those of another model.",
        'Ask for a part of the name: `any(part in name for part in ("bias", "norm"))`; or leave '
        "out what has one dimension.",
    ),
    "term twice": _Words(
        "{this} adds a term of the loss a second time.",
        "`{name}` is in the sum since its addition{other}, with the same factor",
        "It counts twice: its gradient is twice that which its weight says.",
        "Add it in one of the two places.",
    ),
    "weight twice": _Words(
        "{this} multiplies a term by a weight that it was multiplied by before.",
        "`{name}`, and by as much{other}",
        "The term counts with the square of its weight.",
        "Multiply by it in one of the two places.",
    ),
    "rate attribute": _Words(
        "`{name}` is set on the optimizer, where nothing reads it: the learning rate stays as it "
        "was.",
        "{times} steps{other} with another rate",
        _RATE,
        'Set it in each group: `for group in optimizer.param_groups: group["lr"] = rate`.',
    ),
    "rate of a copy": _Words(
        "The learning rate is set in what {this} gives, which is a copy: it stays as it was.",
        "{times} times, and the step{other} was made with another rate",
        _RATE,
        'Set it in the groups themselves: `for group in optimizer.param_groups: group["lr"] = '
        "rate`.",
    ),
    "none yet": _Words(
        "{name}.grad is None: no backward call has been made yet.",
        "read at {this}, where the program ended",
        "backward fills .grad; before the first call it is None.",
        "Use gradients after `loss.backward()`.",
    ),
    "none left": _Words(
        "{name}.grad is None: what backward had brought was dropped before it was read.",
        "read at {this}, where the program ended; zeroed before{other}",
        "`zero_grad` sets .grad to None, unless it is told `set_to_none=False`.",
        "Use gradients between `loss.backward()` and `optimizer.zero_grad()`.",
    ),
    "none brought": _Words(
        "{name}.grad is None: no backward call has brought it a gradient.",
        "read at {this}, where the program ended",
        "Only leaves that the loss depends on get a gradient.",
        "Use it in the forward pass, itself and not a copy; `gradscope backward` shows what the "
        "loss depends on.",
    ),
    "own value": _Words(
        "{this} compares a straight-through value with what it is made of.",
        "the value is `x + (q - x).detach()`, the other is x without its history{other}",
        "As a number it is the distance from q to x; but all of the gradient goes to x, away from "
        "q, and what made q, a codebook, gets none.",
        "Compare q itself: `mse_loss(q, x.detach())`.",
    ),
    "padding taken": _Words(
        "{this} takes a position that is padding for most sequences.",
        "padding for {0} of {1} samples",
        "Beyond its end a sequence is filled with a constant. Those samples send no gradient back, "
        "and look the same to what comes after.",
        "Take each at its own end: `states[torch.arange(len(lengths)), lengths - 1]`, or the "
        "final state that the network returns.",
    ),
    "padding row": _Words(
        "{this} has a row for padding that samples are looked up in.",
        "row {2}, for {0} of {1} samples{other}; it is not zero",
        "The row of `padding_idx` gets no gradient: it stays as it was drawn.",
        "Leave `padding_idx` out, or number what is real from 1 on.",
    ),
    "weight drawn": _Words(
        "`{name}` is drawn as a weight is, and is no Parameter.",
        "an initialiser of torch.nn.init has drawn it; used{other}",
        _NEVER,
        _PARAMETER,
    ),
    "zero factor": _Words(
        "`{name}` is zero, and no Parameter: what it is multiplied with is lost.",
        "the same zeros in {times} uses{other}",
        _NEVER,
        _PARAMETER,
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
    "mixed derivatives": _Words(
        "{this} adds mixed derivatives to the second derivatives.",
        "a gradient of {0} columns is differentiated by the same tensor, all columns at once; "
        "{times} times",
        "Started with ones, grad sums over what it starts from: column i of the result is the "
        "derivative of the sum of all columns by x_i, u_xx + u_xy where u_xx was meant.",
        "Take one column at a time: `torch.autograd.grad(u_x[:, 0].sum(), x, "
        "create_graph=True)[0][:, 0]`; or `torch.func.hessian` under vmap.",
    ),
    "backward uncalled": _Words(
        "{name}.backward is never called: {name} is a Module, and of a Module autograd calls "
        "forward only.",
        "one ran in the forward pass; backward went through the operations of its forward as they "
        "are",
        "Only an autograd.Function brings a backward of its own. The gradient passes here as if "
        "the method were not there.",
        "Write a torch.autograd.Function with a static forward and backward, and call its `apply` "
        "in this forward. To scale or turn a gradient round without one: "
        "`x * -s + (x * (1 + s)).detach()`.",
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
    "name rebound": _Words(
        "{this} changes nothing: it makes a new tensor, and gives it the name `{name}`.",
        "nothing reads `{name}` again before it stands for something else",
        "An assignment to a name changes what the name stands for, never the tensor that it stood "
        "for: the parameter, or its gradient, is as it was.",
        "Change it in place, under `torch.no_grad()`: `{name} -= ...`, or `{name}.copy_(...)`.",
    ),
    "value dropped": _Words(
        "{this} changes nothing: what it gives is dropped at once.",
        "`{name}` computes something that has history, and nothing takes its result",
        _LOST,
        "Assign what it gives, as in `x = x + ...`. A sum that goes on in the next line needs "
        "parentheses around it.",
    ),
    "value replaced": _Words(
        "What {this} gives is lost: `{name}` is given another value before anything reads it.",
        "given another value{other}; the first has history",
        _LOST,
        "Add the two where both are wanted, `{name} = {name} + ...`; give the second another name; "
        "or leave the first out.",
    ),
    "number unread": _Words(
        "What {this} gives is lost: nothing reads `{name}`.",
        "a single number with history; its function reads `{name}` nowhere",
        _LOST,
        "Where it is a term of the loss, add it; else leave it out.",
    ),
    "value unread": _Words(
        "What {this} gives is lost: nothing reads `{name}`.",
        "it has history; its function reads `{name}` nowhere",
        _LOST,
        "Use it in what follows, where that was meant; else leave it out.",
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
}
_WORDS |= {kind: _Words(*words) for kind, words in (AXES | STATES).items()}
_ATTRIBUTES = ("weight drawn", "zero factor")
_ENDS = ("none yet", "none left", "none brought")
_MAYBE = ("value unread", "target unshifted")
"""What may be meant, or left over and do no harm."""

_TERM = re.compile(r"loss|kl|kld|reg|penalty|entropy|cost|nll|bce|mse|ce", re.IGNORECASE)
"""What a name is made of that stands for a term of a loss."""

_NAMED = (
    *_ATTRIBUTES,
    *_ENDS,
    "end ignored",
    "mask ignored",
    "backward uncalled",
    "layer repeated",
    "flag ignored",
)


def looking_for(*kinds: OddityKind) -> Callable[[Facts], Iterable[FindingDraft]]:
    """The rule about these: one finding a line, and one for all attributes of a class."""

    def check(facts: Facts) -> Iterable[FindingDraft]:
        causes: dict[object, list[Oddity]] = {}
        for entry in facts.seen.oddities:
            if entry.kind in kinds and _counts(entry):
                at = facts.location(entry.origin)
                cause: object = (at.file, at.line) if at else None
                if entry.kind in _ATTRIBUTES:
                    cause = entry.name.rpartition(".")[0]
                causes.setdefault(cause, []).append(entry)
        return [_finding(facts, *entries) for entries in causes.values()]

    return check


def _counts(entry: Oddity) -> bool:
    if entry.kind == "padding taken":
        return entry.figures[0] > PADDED * entry.figures[1]
    if entry.kind == "fraction lost":
        return entry.figures[0] >= LOST
    if entry.kind == "load drawn":
        return entry.figures[0] >= DRAWN * entry.figures[1]
    fewest = {
        "zero factor": FEWEST_ZERO,
        "mixed derivatives": FEWEST_MIXED,
        "eval kept": FEWEST_KEPT,
        "rate attribute": FEWEST_SET,
        "rate of a copy": FEWEST_SET,
    }
    return entry.times >= fewest.get(entry.kind, 1)


def _is_term(name: str) -> bool:
    return any(_TERM.fullmatch(part) for part in re.split(r"[_\d]+|(?=[A-Z])", name))


def _finding(facts: Facts, entry: Oddity, *others: Oddity) -> FindingDraft:
    words, shown = _WORDS[entry.kind], list[object](entry.figures)
    if entry.kind in ("view", "axes"):
        axis, *sizes = entry.figures
        shown = [sizes[: sizes.index(-1)], sizes[sizes.index(-1) + 1 :], axis]
    elif entry.kind == "batch squeezed":
        shown = [list(entry.figures)]
    beside = facts.location(entry.other)
    named = {
        "this": facts.expression(entry.origin) or "This",
        "name": entry.name,
        "times": f"{entry.times:,}",
        "other": facts.at(entry.other),
    }
    names = [one.name for one in others if entry.kind in _ATTRIBUTES]
    is_end = entry.kind in (*_ENDS, "batch squeezed")
    may_be = entry.kind in _MAYBE or (entry.kind == "number unread" and not _is_term(entry.name))
    return facts.finding(
        "error" if is_end else "information" if may_be else "warning",
        words.message.format(*shown, **named),
        next((n.id for n in facts.graph.nodes if n.origin == entry.origin), None),
        location=facts.location(entry.origin),
        subject=entry.name if entry.kind in _NAMED else facts.variable(entry.origin),
        evidence=(
            words.evidence.format(*shown, **named),
            *([f"so {'are' if len(names) > 1 else 'is'} {listed(names)}"] if names else []),
        ),
        why=words.why,
        remedy=words.remedy.format(**named),
        explains=beside if entry.kind == "own value" else None,
        fails=is_end,
    )
