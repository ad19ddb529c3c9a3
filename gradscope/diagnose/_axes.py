"""What is said where axes, samples or elements are taken for one another."""

from __future__ import annotations

from gradscope.diagnose._said import Words

FEWEST_MIXED = 2
"""Calls that mix second derivatives, before anything is said of them."""

_APART = (
    "What a sample gives then depends on the others in its batch, and its gradient goes to them "
    "as well; alone it gives something else."
)

AXES: dict[str, Words] = {
    "view": Words(
        "{this} mixes the samples of the batch.",
        "{0} becomes {1}, and axis {2} of the first counts the samples",
        f"A view keeps the order of the elements in memory. {_APART}",
        "Bring the samples to the front before: `x.transpose(0, 1).reshape(batch, -1)`; or "
        "`torch.cat([x[-2], x[-1]], dim=-1)` for the two directions of a recurrent network.",
    ),
    "fold": Words(
        "{this} makes one row of the whole batch.",
        "the loss compares the one result with the targets of {0} samples",
        "The samples become features of one another: there is one prediction for all of them, and "
        "broadcasting compares it with each target. The best it can learn is the mean.",
        "Keep the first dimension: `x.flatten(1)`, or `x.view(len(x), -1)`, and a layer of as many "
        "inputs as one sample has.",
    ),
    "last sample": Words(
        "{this} takes axis {0} for the samples, and the last of them is used as if it were the "
        "last step.",
        "of {1} samples the last is taken{other}; the others get no gradient through it",
        "Without batch_first=True a recurrent network takes [steps, samples, features], with it "
        f"[samples, steps, features]. Given the other, it goes from sample to sample. {_APART}",
        "Where the data is [samples, steps, features], say `batch_first=True` and take "
        "`states[:, -1]`; where it is [steps, samples, features], leave it out and take "
        "`states[-1]`.",
    ),
    "along samples": Words(
        "{this} goes along the samples that a DataLoader has put in a batch.",
        "{0} samples are taken for its steps, and {1} of something else for the samples",
        "Without batch_first=True torch's recurrent networks and attentions take [steps, samples, "
        "features]. A sample then gets what belongs to those before it in its batch.",
        "Say `batch_first=True`, or give it `x.transpose(0, 1)`.",
    ),
    "softmax": Words(
        "{this} is a softmax over the samples of the batch.",
        "the dimension of {0} samples adds up to 1, and each sample is used by itself",
        f"The samples compete with each other. {_APART}",
        "Name the dimension of the classes or positions: `dim=-1`.",
    ),
    "mean": Words(
        "{this} is the mean over all samples, and is taken off each of them.",
        "the mean of all elements of {0} samples",
        _APART,
        "Name the dimension: `x.mean(dim=1, keepdim=True)`.",
    ),
    "norm of a part": Words(
        "{this} is the norm of a part of each sample's gradient.",
        "{0} norms for each sample, whose gradient has {1} elements",
        "The score is one number a sample, and its gradient one vector, which is to have the norm "
        "that the penalty asks for. Where each part has it, the whole has more.",
        "Flatten first: `gradient.flatten(1).norm(dim=1)`.",
    ),
    "axes": Words(
        "{this} mixes the axes: the one of length {2} is no longer what it was.",
        "{0} becomes {1}, and the result is used{other} as if it had kept the axis of length {2}",
        "A view keeps the order of the elements in memory, and counts them off anew: each place "
        "along that axis is then filled with elements of several.",
        "Move the axes first: `x.transpose(1, 2).reshape(...)` or `x.permute(...)`, so that the "
        "shape changes only by merging neighbours, or by splitting one axis.",
    ),
    "constant over samples": Words(
        "{this} brings in a constant that varies along the samples of the batch.",
        "each of {0} samples gets another one, and all {1} steps of a sample the same",
        "A code of positions is to tell the steps of a sequence apart. Along the samples it says "
        "only where in its batch a sequence happens to stand.",
        "Let it vary along the steps: for [samples, steps, features] a code of [1, steps, "
        "features], such as `pe[:, : x.size(1)]` or `torch.arange(x.size(1))`.",
    ),
    "reduction": Words(
        "{this} lines up a reduction with another axis than the one that it has kept.",
        "axis {0} was left{other}, and meets axis {1} of what was reduced",
        "Without keepdim=True the reduced axis is gone, and broadcasting begins at the last axis. "
        "It is noticed only where the two are not of the same length.",
        "Keep it: `x.sum(dim=1, keepdim=True)`.",
    ),
    "batch squeezed": Words(
        "{this} takes the samples' own axis away where the batch has one sample.",
        "given {0}; the program ended{other} by what came of it",
        "Without a dimension squeeze takes away every axis of length 1. With more samples the axis "
        "stayed; the last batch of an epoch may have a single one.",
        "Name the dimension: `x.squeeze(-1)`.",
        severity="error",
    ),
    "own weights": Words(
        "{this} draws a weight of its own for each of the elements of a sample.",
        "{0} weights a sample, and the gradient by the result is asked for, with create_graph=True",
        "The penalty belongs on the straight line between a real sample and a generated one. With "
        "weights of its own for each element a point is noise between the two, and hardly ever "
        "near that line.",
        "Draw one for each sample: `torch.rand(len(x), 1, 1, 1)`.",
    ),
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
}
