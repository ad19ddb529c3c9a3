"""What is said where two axes, or two elements, are taken for one another: for each kind of oddity
what it does, the evidence, why that matters, and what to do."""

from __future__ import annotations

from gradscope.model.observations import OddityKind

AXES: dict[OddityKind, tuple[str, str, str, str]] = {
    "axes": (
        "{this} mixes the axes: the one of length {2} is no longer what it was.",
        "{0} becomes {1}, and the result is used{other} as if it had kept the axis of length {2}",
        "A view keeps the order of the elements in memory, and counts them off anew: each place "
        "along that axis is then filled with elements of several.",
        "Move the axes first: `x.transpose(1, 2).reshape(...)` or `x.permute(...)`, so that the "
        "shape changes only by merging neighbours, or by splitting one axis.",
    ),
    "constant over samples": (
        "{this} brings in a constant that varies along the samples of the batch.",
        "each of {0} samples gets another one, and all {1} steps of a sample the same",
        "A code of positions is to tell the steps of a sequence apart. Along the samples it says "
        "only where in its batch a sequence happens to stand.",
        "Let it vary along the steps: for [samples, steps, features] a code of [1, steps, "
        "features], such as `pe[:, : x.size(1)]` or `torch.arange(x.size(1))`.",
    ),
    "reduction": (
        "{this} lines up a reduction with another axis than the one that it has kept.",
        "axis {0} was left{other}, and meets axis {1} of what was reduced",
        "Without keepdim=True the reduced axis is gone, and broadcasting begins at the last axis. "
        "It is noticed only where the two are not of the same length.",
        "Keep it: `x.sum(dim=1, keepdim=True)`.",
    ),
    "batch squeezed": (
        "{this} takes the samples' own axis away where the batch has one sample.",
        "given {0}; the program ended{other} by what came of it",
        "Without a dimension squeeze takes away every axis of length 1. With more samples the axis "
        "stayed; the last batch of an epoch may have a single one.",
        "Name the dimension: `x.squeeze(-1)`.",
    ),
    "own weights": (
        "{this} draws a weight of its own for each of the elements of a sample.",
        "{0} weights a sample, and the gradient by the result is asked for, with create_graph=True",
        "The penalty belongs on the straight line between a real sample and a generated one. With "
        "weights of its own for each element a point is noise between the two, and hardly ever "
        "near that line.",
        "Draw one for each sample: `torch.rand(len(x), 1, 1, 1)`.",
    ),
    "along samples": (
        "{this} goes along the samples that a DataLoader has put in a batch.",
        "{0} samples are taken for its steps, and {1} of something else for the samples",
        "Without batch_first=True torch's recurrent networks and attentions take [steps, samples, "
        "features]. A sample then gets what belongs to those before it in its batch.",
        "Say `batch_first=True`, or give it `x.transpose(0, 1)`.",
    ),
}
