"""Custom Functions of a user, as text for a program."""

from __future__ import annotations


def function(
    name: str,
    forward: str,
    backward: str,
    given: str = "x",
    upstream: str = "grad",
    keeps: str = "",
) -> str:
    """A class of this name.

    Args:
        name: how it is called.
        forward: the statements of a method, parted by semicolons; the last is what it returns.
        backward: likewise.
        given: the operands.
        upstream: the gradients that backward is given.
        keeps: names of forward that backward has, too.
    """
    keep, take = (f"ctx.save_for_backward({keeps}); ", f"{keeps}, = ctx.saved_tensors; ")
    methods = ("forward", given, keep, forward), ("backward", upstream, take, backward)
    lines = [f"class {name}(torch.autograd.Function):"]
    for method, operands, first, statements in methods:
        *before, result = f"{first if keeps else ''}{statements}".split("; ")
        lines += ["    @staticmethod", f"    def {method}(ctx, {operands}):"]
        lines += [f"        {line}" for line in (*before, f"return {result}")]
    return "\n".join([*lines, ""])
