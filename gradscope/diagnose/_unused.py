"""What is said of results that nothing takes, and of gradients that are not there."""

from __future__ import annotations

from gradscope.diagnose._said import Words

_DROPPED = "{this} changes nothing: it gives a new tensor, which is dropped at once."
_IN_PLACE = "Call `{name}_`, with an underscore, which works in place; or assign what it gives."

UNUSED: dict[str, Words] = {
    "gradient dropped": Words(
        _DROPPED,
        "`{name}` is given a gradient, and nothing takes its result",
        "The gradient stays as it was, and the step uses it so.",
        _IN_PLACE,
    ),
    "parameter dropped": Words(
        _DROPPED,
        "`{name}` is given a parameter, and nothing takes its result",
        "The parameter stays as it was.",
        _IN_PLACE,
    ),
    "history dropped": Words(
        _DROPPED,
        "`{name}` is given a result with history, and nothing takes its result",
        "The result keeps its history, and takes it into whatever it goes into next.",
        "Assign what it gives: `h = h.detach()`.",
    ),
    "none yet": Words(
        "{name}.grad is None: no backward call has been made yet.",
        "read at {this}, where the program ended",
        "backward fills .grad; before the first call it is None.",
        "Use gradients after `loss.backward()`.",
        severity="error",
        is_named=True,
    ),
    "none left": Words(
        "{name}.grad is None: what backward had brought was dropped before it was read.",
        "read at {this}, where the program ended; zeroed before{other}",
        "`zero_grad` sets .grad to None, unless it is told `set_to_none=False`.",
        "Use gradients between `loss.backward()` and `optimizer.zero_grad()`.",
        severity="error",
        is_named=True,
    ),
    "none since": Words(
        "{name}.grad is None: the last backward call has brought it no gradient.",
        "read at {this}, where the program ended; zeroed before{other}",
        "Only leaves that the loss depends on get a gradient, and `zero_grad` has set the one that "
        "it had to None.",
        "Leave out those whose .grad is None; or let each loss depend on it.",
        severity="error",
        is_named=True,
    ),
    "none brought": Words(
        "{name}.grad is None: no backward call has brought it a gradient.",
        "read at {this}, where the program ended",
        "Only leaves that the loss depends on get a gradient.",
        "Use it in the forward pass, itself and not a copy; `gradscope backward` shows what the "
        "loss depends on.",
        severity="error",
        is_named=True,
    ),
}
