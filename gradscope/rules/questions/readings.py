"""How errors of torch's are read: a part of their text, and what to say about it; a table."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from gradscope.model.observations import Failure
from gradscope.rules.facts import Facts, FindingDraft
from gradscope.words import first_line


class ErrorReading(NamedTuple):
    """How an error of torch's is read: a part of its text, and what to say about it."""

    text: str
    message: str
    why: str
    remedy: str


def read(facts: Facts, readings: Iterable[ErrorReading]) -> Iterable[tuple[Failure, FindingDraft]]:
    """The failure, if one of these is what torch said, with a finding on it."""
    failure = facts.seen.failure
    for reading in readings:
        if failure is not None and re.search(reading.text, failure.message):
            yield failure, explained(facts, failure, reading)
            return


def explained(facts: Facts, failure: Failure, reading: ErrorReading) -> FindingDraft:
    """A failure in these words, at its place."""
    first = first_line(failure.message)
    return facts.finding(
        "error",
        reading.message,
        location=facts.location(failure.origin),
        subject=facts.variable(failure.origin),
        evidence=f"{failure.type}: {first[:300]}",
        why=reading.why,
        remedy=reading.remedy,
        fails=True,
    )


NONSCALAR = ErrorReading(
    "grad can be implicitly created only for scalar outputs",
    "backward starts from a tensor with more than one element and is given no gradient.",
    "Only for a single number is the gradient to start with clear: 1. For more elements it depends "
    "on what is to be minimised.",
    "Reduce it first (`loss.mean().backward()`), or say how much each element counts: "
    "`loss.backward(gradient=torch.ones_like(loss))`.",
)
SHAPES = ErrorReading(
    "Mismatch in shape: grad_output",
    "The gradient handed to backward has another shape than the tensor it is for.",
    "There must be one number for each element of that tensor.",
    "Give it the shape of the tensor.",
)
RESHAPED = "Give it the shape of the tensor: `gradient.reshape(output.shape)`."
"""What to do with one of as many elements."""

LEAVES = (
    ErrorReading(
        "a leaf Variable that requires grad",
        "A leaf that requires grad is changed in place while gradients are recorded.",
        "Its old value is where backward ends; changed in place, the leaf would become the result "
        "of an operation.",
        "Change it under `with torch.no_grad():`, or make a new tensor with an out-of-place "
        "operation.",
    ),
    ErrorReading(
        "view of a leaf Variable",
        "A part of a leaf that requires grad is changed in place while gradients are recorded.",
        "Its old value is where backward ends; an assignment by index changes it too.",
        "Assign under `with torch.no_grad():`, or build the tensor first and make it a parameter "
        "afterwards.",
    ),
    ErrorReading(
        r"BackwardHookFunction\w* is a view and",
        "A view that a module's backward hook has made is changed in place.",
        "With a full backward hook a module takes and gives views, by which the hook sees the "
        "gradients; torch refuses to change one of them in place.",
        "Use the out-of-place operation (`inplace=False`, `a = a * b`), or leave the hook out.",
    ),
    ErrorReading(
        "view was created inside a custom Function",
        "A view that a custom Function returns is changed in place.",
        "The change would put its own backward in the place of that of the Function; torch refuses "
        "it.",
        "Use the out-of-place operation (`a = a * b`), or clone the result of the Function first.",
    ),
    ErrorReading(
        "is a view and is being modified inplace",
        "A view that came out together with others is changed in place.",
        "unbind, split and chunk return several views of one tensor, and torch cannot tell the "
        "others of the change.",
        "Use the out-of-place operation (`a = a * b`), or clone the piece first.",
    ),
    ErrorReading(
        "that returns multiple views",
        "A view that came out together with others is changed in place.",
        "unbind, split and chunk return several views of one tensor.",
        "Use the out-of-place operation, or clone the piece first.",
    ),
)
FUNCTIONS = (
    ErrorReading(
        "returned an incorrect number of gradients",
        "A custom Function's backward returns the wrong number of gradients.",
        "It must return one for every argument of forward (ctx not counted), in their order.",
        "Return None for arguments that need no gradient: `return grad * factor, None`.",
    ),
    ErrorReading(
        "returned an invalid gradient",
        "A custom Function's backward returns a gradient of the wrong shape or type.",
        "A gradient has the shape of the argument it is for; where forward broadcast the argument, "
        "the gradient has to be summed back.",
        "Sum over the dimensions that broadcasting added: `grad.sum_to_size(x.shape)`.",
    ),
    ErrorReading(
        "expected Variable or None",
        "A custom Function's backward returns something that is no tensor.",
        "Every returned gradient is a tensor or None.",
        "Return tensors, or None for arguments that need no gradient.",
    ),
)
TWICE = (
    ErrorReading(
        "differentiate twice a function that was marked with @once_differentiable",
        "A custom Function is differentiated twice, and is marked once_differentiable.",
        "The gradient is itself differentiated (create_graph=True), so the backward of the "
        "Function has to be differentiable too.",
        "Take the mark away and write backward with differentiable operations on saved tensors, or "
        "leave this Function out of what the penalty goes through.",
    ),
    ErrorReading(
        "is not implemented",
        "An operation is differentiated twice, and torch has no second derivative for it.",
        "The gradient is itself differentiated (create_graph=True).",
        "Use an operation that torch can differentiate twice, or write this one with basic "
        "operations.",
    ),
    ErrorReading(
        "is not twice differentiable",
        "An operation is differentiated twice that cannot be.",
        "The gradient is itself differentiated (create_graph=True).",
        "Use an operation that torch can differentiate twice.",
    ),
)
HOOKS = (
    ErrorReading(
        r"hook .*has changed the size of value",
        "A hook returns something of another shape than the gradient it was given.",
        "What a hook returns takes the gradient's place; a hook that only looks must return None.",
        "Return nothing from a hook that logs (beware of lambdas, which always return); a module's "
        "hook returns a tuple, `(grad,)`.",
    ),
    ErrorReading(
        r"hook .*has changed the type of value",
        "A hook returns something that is not a gradient of the same type.",
        "What a hook returns takes the gradient's place.",
        "Return None, or a tensor of the same shape, dtype and device.",
    ),
    ErrorReading(
        r"ooks? returned an (?:incorrect|invalid) number",
        "A module's hook returns the wrong number of gradients.",
        "It returns one for each gradient it was given, as a tuple.",
        "Return None, or a tuple as long as grad_input.",
    ),
    ErrorReading(
        r"hook should|expected .*hook.* to return",
        "A hook returns something that is not a gradient.",
        "What a hook returns takes the gradient's place.",
        "Return None, or a tensor of the same shape, dtype and device.",
    ),
)
SCALER = (
    ErrorReading(
        r"unscale_\(\) has already been called on this optimizer",
        "The gradients are unscaled a second time, and scaler.update() was not called in between.",
        "A GradScaler remembers, until update(), which optimizers it has unscaled: to divide twice "
        "would make the gradients 65,536 times too small. An iteration that leaves out the step "
        "must not leave out the update.",
        "Call `scaler.update()` once in every iteration that unscales, also in one that skips "
        "`scaler.step(optimizer)`.",
    ),
    ErrorReading(
        r"(unscale_\(\) is being called after step|step\(\) has already been called since)",
        "A GradScaler is asked for the same step twice, without scaler.update() in between.",
        "One iteration is scale, backward, unscale_, step, update, each once for an optimizer.",
        "Call `scaler.unscale_` before `scaler.step`, each once, and `scaler.update()` at the end "
        "of the iteration.",
    ),
    ErrorReading(
        "No inf checks were recorded",
        "A GradScaler steps or updates, and has unscaled no gradient since its last update.",
        "Either the loss was not multiplied, `scaler.scale(loss).backward()`; or the optimizer was "
        "stepped without it, with gradients that are still multiplied; or its parameters have no "
        "gradient at all.",
        "Write `scaler.scale(loss).backward()`, then `scaler.step(optimizer)` for "
        "`optimizer.step()`, then `scaler.update()`.",
    ),
    ErrorReading(
        "Attempting to unscale FP16 gradients",
        "The parameters themselves are float16, and a GradScaler refuses to unscale them.",
        "To divide a float16 gradient by the scale would round it to zero again.",
        "Keep the parameters in float32 (no `.half()`), and compute under torch.autocast.",
    ),
    ErrorReading(
        "but _scale is None",
        "A GradScaler steps, and has never scaled a loss.",
        "It learns the device and its scale from the first loss.",
        "Write `scaler.scale(loss).backward()` for `loss.backward()`.",
    ),
)
