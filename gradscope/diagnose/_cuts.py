"""What each function that cuts history does, and what to write instead; a table of words."""

from __future__ import annotations

_NUMBERS = "It turns the tensor into a plain number, and numbers have no history."
CUTS: dict[str, tuple[str, str]] = {
    **dict.fromkeys(
        ("item", "float", "__float__", "int", "__int__", "tolist"),
        (_NUMBERS, "Go on with the tensor itself; use `.item()` only for what is printed."),
    ),
    **dict.fromkeys(
        ("numpy", "__array__"),
        (
            "NumPy knows nothing of gradients.",
            "Write that part with torch operations, or as a torch.autograd.Function.",
        ),
    ),
    **dict.fromkeys(
        ("tensor", "as_tensor", "new_tensor"),
        (
            "It copies the numbers into a new tensor, which has no history.",
            "Use `torch.stack` or `torch.cat` on the tensors; torch.tensor is for plain data.",
        ),
    ),
    "Parameter": (
        "A Parameter is a new leaf: it has the numbers of what it is made of, not the history.",
        "Make Parameters in __init__ only; use what is computed in forward as it is "
        "(torch.func.functional_call puts it in the place of a parameter).",
    ),
    "grad": (
        "Without create_graph=True the gradients that torch.autograd.grad returns have no history.",
        "Pass `create_graph=True` where a loss is computed from the gradients.",
    ),
    **dict.fromkeys(
        ("detach", "detach_", "data", "__get__"),
        (
            "Its result shares the numbers but not the history.",
            "Leave it out where a gradient is wanted; keep it for targets, logging and state that "
            "is carried over.",
        ),
    ),
    **dict.fromkeys(
        ("argmax", "argmin", "argsort", "multinomial", "bincount", "topk", "sort", "max"),
        (
            "An index has no derivative.",
            "Compute the loss from the scores (cross_entropy takes logits), or use "
            "`gumbel_softmax` for a choice that can be learned.",
        ),
    ),
}
COMPARISON = (
    "The result of a comparison is a step: it has no derivative.",
    "Use a smooth gate (sigmoid), or let the gradient pass it: `hard + soft - soft.detach()`.",
)
