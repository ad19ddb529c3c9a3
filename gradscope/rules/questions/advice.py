"""Why an operation makes NaN or infinity, and what to write instead; a table of words.

Keys are ops without their ending.
"""

from __future__ import annotations

from typing import NamedTuple


class Advice(NamedTuple):
    """What happens in the operation, and what to do about it."""

    why: str
    remedy: str


_LOG = Advice(
    "The logarithm of 0 is -inf, of a negative number NaN.",
    "Clamp its operand from below, `torch.log(x.clamp(min=1e-8))`; after a softmax use "
    "`log_softmax`, after a sigmoid `logsigmoid` or `binary_cross_entropy_with_logits`.",
)
_ROOT = Advice(
    "The root of a negative number is NaN; a difference of rounded numbers easily falls below 0.",
    "Clamp before the root, `torch.sqrt(x.clamp(min=0) + eps)`, or use `torch.var`.",
)
_INVERSE_ROOT = Advice(
    "1 divided by the root of 0 is infinite, and the root of a negative number NaN.",
    "Keep its operand above 0: `torch.rsqrt(x.clamp(min=0) + eps)`.",
)
_DIVISION = Advice(
    "A number divided by 0, or by one so small that the result overflows, is infinite; 0/0 is NaN.",
    "Keep the divisor away from 0, `x / y.clamp(min=eps)` where y is never negative, by no less "
    "than what comes of it can bear: by 1e-8 all is made 1e8 times as large.",
)
_SOFTMAX = Advice(
    "A softmax over a row that holds nothing but -inf, as every element is masked, or that holds "
    "infinity, as a product has overflowed, is NaN.",
    "Leave at least one element unmasked, mask with a large finite number "
    "(`torch.finfo(x.dtype).min`), or drop such rows; make scores smaller that overflow.",
)
OVERFLOWING = Advice(
    "What is larger than its dtype can hold becomes infinite, as does a pole; or a plain number in "
    "the call is infinite itself.",
    "Look at the numbers in the call; make the operands smaller (normalise, clamp), or compute in "
    "a wider dtype.",
)
OF_HALF = Advice(
    "What is larger than float16 can hold, 65,504, becomes infinite.",
    "Compute this part in float32 (`.float()`, or a block of `torch.autocast(..., "
    "enabled=False)`), scale before it, or use bfloat16.",
)
UNDEFINED = Advice(
    "0/0 is NaN, and so is infinity minus infinity, or times 0, if that comes up on the way; and a "
    "plain number in the call may be NaN itself.",
    "Look at the operands: a divisor, a count or a spread that is 0, products that overflow, or "
    "two infinities, as of what is masked, that are subtracted.",
)
_EXP = Advice(
    "exp overflows above 88.7 in float32 and above 11.1 in float16.",
    "Use the stable form that torch has (`softplus`, `logsumexp`, `log_softmax`, `sigmoid`), or "
    "clamp the exponent.",
)
_NORMALISED = Advice(
    "Where all numbers that are normalised together are equal their spread is 0, and 0/0 is NaN; "
    "so is what comes of squares that overflow, or of a running variance below 0.",
    "Give the layer an `eps` that its dtype can hold beside the numbers that go in; make large "
    "numbers smaller before they go in.",
)
_DETERMINANT = Advice(
    "The determinant of a singular matrix is 0, its logarithm -inf, and that of a negative one "
    "NaN; that of a large matrix overflows.",
    "Add a small multiple of the identity, and leave out what makes rows equal or zero; of a large "
    "matrix take `torch.linalg.slogdet`.",
)
_RANGE = Advice(
    "The function is defined in an interval only, and at its ends it may be infinite.",
    "Clamp it into the interval, a little inside its ends.",
)

FORWARD: dict[str, Advice] = {
    **dict.fromkeys(("Log", "Log2", "Log10", "Xlogy", "Special"), _LOG),
    "Sqrt": _ROOT,
    "Rsqrt": _INVERSE_ROOT,
    **dict.fromkeys(("Div", "Reciprocal", "Fmod", "Remainder"), _DIVISION),
    **dict.fromkeys(("Softmax", "LogSoftmax", "ScaledDotProductFlashAttentionForCpu"), _SOFTMAX),
    **dict.fromkeys(("Exp", "Expm1", "Exp2", "Sinh", "Cosh"), _EXP),
    **dict.fromkeys(("Acos", "Asin", "Atanh", "Acosh", "Erfinv", "Log1P", "Logit"), _RANGE),
    **dict.fromkeys(("LinalgSlogdet", "LinalgDet"), _DETERMINANT),
    **dict.fromkeys(
        ("NativeLayerNorm", "NativeGroupNorm", "NativeBatchNorm", "CudnnBatchNorm"), _NORMALISED
    ),
    "CtcLoss": Advice(
        "No alignment exists where a target is longer than its input (and every repeated label "
        "takes one step more), so its loss is infinite.",
        "Check the lengths, drop such samples, or pass `zero_infinity=True`.",
    ),
    **dict.fromkeys(
        ("NllLoss", "NllLoss2D"),
        Advice(
            "The mean over no target at all is 0/0, as where each of them is `ignore_index`, or "
            "has weight 0; a sum may overflow.",
            "Skip such a batch, or sum and divide by `max(count, 1)`.",
        ),
    ),
    **dict.fromkeys(
        ("Std", "StdMean", "Var", "VarMean"),
        Advice(
            "The unbiased estimate divides by n - 1, which is 0 for a single element; squares of "
            "large numbers overflow.",
            "Make large numbers smaller, and take it over two elements or more; with "
            "`correction=0` it is 0 for one, and gives no gradient.",
        ),
    ),
    "Pow": Advice(
        "A large power overflows; a negative base with a fractional exponent is NaN, and 0 to a "
        "negative power infinite.",
        "Clamp the base, or take the power of its absolute value.",
    ),
}


def _at_zero(what: str, remedy: str) -> Advice:
    return Advice(
        f"The derivative of {what} is infinite, and what comes from above times infinity is "
        "infinite, or NaN where it is 0.",
        f"Keep the operand away from it before it goes in: {remedy}.",
    )


_LOG_AT_ZERO = Advice(
    "The derivative is infinite at 0, also where the forward result is not used.",
    "Keep the operand away from 0 before it goes in: `torch.log(x.clamp(min=eps))`.",
)
_DIVISION_AT_ZERO = Advice(
    "The derivative is infinite where the divisor is 0, also where the forward result is not used.",
    "Keep the divisor away from 0 before it goes in: `x / y.clamp(min=eps)` where y is never "
    "negative.",
)

_ENDS = ("Acos", "Asin", "Atanh", "Erfinv")
_VECTORS = ("LinalgEigh", "LinalgSvd", "LinalgEig", "LinalgQr")
_GROWING = ("Exp", "Expm1", "Exp2", "Sinh", "Cosh")
AT_ENDS = (*_ENDS, *_VECTORS, "Acosh")
NOT_AT_ZERO = (*AT_ENDS, *_GROWING)
"""Whose derivative is infinite elsewhere than at 0."""

BACKWARD: dict[str, Advice] = {
    "Sqrt": _at_zero("a root at 0", "`torch.sqrt(x + eps)`"),
    "Pow": _at_zero(
        "a power with an exponent below 1 at 0", "`(x + eps) ** p`, or `x.clamp(min=eps) ** p`"
    ),
    "Acosh": _at_zero("acosh at 1", "`torch.acosh(x.clamp(min=1 + eps))`"),
    "Log1P": _at_zero("log1p at -1", "`torch.log1p(x.clamp(min=-1 + eps))`"),
    **dict.fromkeys(("Log", "Log2", "Log10", "Xlogy"), _LOG_AT_ZERO),
    **dict.fromkeys(("Div", "Reciprocal", "Rsqrt"), _DIVISION_AT_ZERO),
    **dict.fromkeys(
        _ENDS,
        Advice(
            "The derivative is infinite at the ends of the interval (±1), and large near them.",
            "Clamp to the inside of the interval, `x.clamp(-1 + 1e-6, 1 - 1e-6)`, by 1e-2 in "
            "half precision; for angles `torch.atan2` has no such ends.",
        ),
    ),
    **dict.fromkeys(
        _VECTORS,
        Advice(
            "The derivative of eigenvectors and singular vectors divides by the differences of "
            "their values, 0 where two are equal; that of QR, and of a matrix that is not square, "
            "also by what is 0 where its rank is not full.",
            "Break the tie (add a small random diagonal), or use only the values, whose derivative "
            "is finite.",
        ),
    ),
    **dict.fromkeys(
        _GROWING,
        Advice(
            "Its result is infinite, and a gradient of 0 times infinity is NaN.",
            "Clamp the exponent before it goes in: `torch.exp(x.clamp(max=80))`, in float16 to 10.",
        ),
    ),
}
_SMALL_IN_HALF = "In float16 what is below 3e-8 is 0: take 1e-4, or compute this part in float32."


def in_half(advice: Advice, is_half: bool) -> Advice:
    """Add what makes a small number that it names one in float16, too, if the result is in that."""
    is_small = any(one in advice.remedy for one in ("eps)", "min=1e-8)"))
    if not (is_half and is_small):
        return advice
    return advice._replace(remedy=f"{advice.remedy} {_SMALL_IN_HALF}")


BACKWARD_ELSE = Advice(
    "Its local derivative is not finite for these inputs.",
    "Look at the saved tensors in the evidence, and keep the operand away from such values.",
)
TOO_LARGE_FOR_HALF = Advice(
    "A gradient larger than 65,504 has no float16.",
    "Use torch.amp.GradScaler, or keep this part in float32.",
)
SCALED = Advice(
    "With a gradient scaler this is expected in the first steps; it skips them and lowers its "
    "scale.",
    "Nothing, if it happens rarely.",
)
NAN_TAKEN = Advice(
    "It was computed from NaN, at which its local derivative is NaN, too: whatever arrives, also 0 "
    "for what is masked or left out behind it, NaN is sent on.",
    "Leave such elements out before this operation, not behind it: index with the mask first, or "
    "put a harmless number in their place, `torch.where(good, x, 1)`.",
)
TOO_LARGE = Advice(
    "Its backward computes NaN or infinity of these inputs, as where its local derivative is not "
    "finite, or that times what arrives is beyond the largest number of its dtype.",
    "Keep both nearer to 1 (normalise, scale the loss), or compute in a wider dtype.",
)
"""Of what had saved nothing but ordinary numbers."""
