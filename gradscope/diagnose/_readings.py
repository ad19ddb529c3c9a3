"""How errors of torch's are read: a part of their text, and what to say about it; a table."""

from __future__ import annotations

from typing import NamedTuple


class ErrorReading(NamedTuple):
    """How an error of torch's is read: a part of its text, and what to say about it."""

    text: str
    message: str
    why: str
    remedy: str


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
    "Give it the shape of the tensor: `gradient.reshape(output.shape)`, or expand it.",
)
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
