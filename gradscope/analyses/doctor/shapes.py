"""Operations whose operands were broadcast against each other to something larger than both."""

from __future__ import annotations

from gradscope.recording.torch_call import TorchCall

MAX_PLACES = 1_000
"""Places that are remembered."""

LOSSES = frozenset(
    [
        "mse_loss",
        "l1_loss",
        "smooth_l1_loss",
        "huber_loss",
        "kl_div",
        "gaussian_nll_loss",
        "poisson_nll_loss",
        "soft_margin_loss",
    ]
)
_ELEMENTWISE = frozenset(
    [
        "add",
        "sub",
        "mul",
        "div",
        "truediv",
        "rsub",
        "radd",
        "rmul",
        "rtruediv",
        "subtract",
        "multiply",
        "divide",
        "true_divide",
        "pow",
        "rpow",
        "maximum",
        "minimum",
        "squared_difference",
    ]
)
WATCHED = LOSSES | _ELEMENTWISE

Shape = tuple[int, ...]


class Broadcasts:
    """Places where two shapes grew into a third."""

    def __init__(self) -> None:
        self.known: dict[int, tuple[str, tuple[Shape, Shape], Shape]] = {}

    def note(self, call: TorchCall) -> None:
        """Look at one call that made a node, of a function in :data:`WATCHED`."""
        if len(call.operands) < 2:
            return
        first, second = call.operands[0].shape, call.operands[1].shape
        # A scalar is there to be broadcast.
        if first == second or not first or not second:
            return
        result = _broadcast(first, second)
        # Where only one of them grows, as a bias does, it is meant as a rule.
        if result in (first, second) or call.place in self.known or len(self.known) >= MAX_PLACES:
            return
        shapes = (tuple(first), tuple(second))
        self.known[call.place] = (call.function, shapes, tuple(result))


def _broadcast(first: Shape, second: Shape) -> Shape:
    """The shape that two operands of one call grow to."""
    longer = max(len(first), len(second))
    padded = [(1,) * (longer - len(shape)) + tuple(shape) for shape in (first, second)]
    return tuple(b if a == 1 else a for a, b in zip(*padded, strict=True))
