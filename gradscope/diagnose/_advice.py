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
_DIVISION = Advice(
    "A number divided by 0 is infinite, and 0/0 is NaN.",
    "Keep the divisor away from 0: `x / y.clamp(min=1e-8)`.",
)
_SOFTMAX = Advice(
    "A softmax over a row that holds nothing but -inf is NaN: every element of it is masked.",
    "Leave at least one element unmasked, mask with a large finite number "
    "(`torch.finfo(x.dtype).min`), or drop such rows.",
)
_GROWS = Advice(
    "The result is larger than its dtype can hold.",
    "Make the operands smaller (normalise, clamp), or compute in a wider dtype.",
)
_EXP = Advice(
    "exp overflows above 88.7 in float32 and above 11.1 in float16.",
    "Use the stable form that torch has (`softplus`, `logsumexp`, `log_softmax`, `sigmoid`), or "
    "clamp the exponent.",
)
_DETERMINANT = Advice(
    "The determinant of a singular matrix is 0, its logarithm -inf, and that of a negative one "
    "NaN.",
    "Add a small multiple of the identity, and leave out what makes rows equal or zero.",
)
_RANGE = Advice(
    "The operand lies outside the interval where the function is defined.",
    "Clamp it into the interval, a little inside its ends.",
)

FORWARD: dict[str, Advice] = {
    **dict.fromkeys(("Log", "Log2", "Log10", "Log1P", "Xlogy", "Logit", "Special"), _LOG),
    **dict.fromkeys(("Sqrt", "Rsqrt"), _ROOT),
    **dict.fromkeys(("Div", "Reciprocal", "Fmod", "Remainder"), _DIVISION),
    **dict.fromkeys(("Softmax", "LogSoftmax", "ScaledDotProductFlashAttentionForCpu"), _SOFTMAX),
    **dict.fromkeys(("Exp", "Expm1", "Exp2", "Sinh", "Cosh"), _EXP),
    **dict.fromkeys(("Acos", "Asin", "Atanh", "Acosh", "Erfinv"), _RANGE),
    **dict.fromkeys(("LinalgSlogdet", "LinalgDet"), _DETERMINANT),
    "CtcLoss": Advice(
        "No alignment exists where a target is longer than its input (and every repeated label "
        "takes one step more), so its loss is infinite.",
        "Check the lengths, drop such samples, or pass `zero_infinity=True`.",
    ),
    **dict.fromkeys(
        ("NllLoss", "NllLoss2D"),
        Advice(
            "The mean over no target at all is 0/0: each of them is `ignore_index`, or has weight "
            "0.",
            "Skip such a batch, or sum and divide by `max(count, 1)`.",
        ),
    ),
    **dict.fromkeys(
        ("Std", "StdMean", "Var", "VarMean"),
        Advice(
            "The unbiased estimate divides by n - 1, which is 0 for a single element.",
            "Pass `correction=0` (or `unbiased=False`), or take it over more elements.",
        ),
    ),
    "Pow": Advice(
        "A large power overflows; a negative base with a fractional exponent is NaN, and 0 to a "
        "negative power infinite.",
        "Clamp the base, or take the power of its absolute value.",
    ),
}
FORWARD_ELSE = _GROWS

_AT_ZERO = Advice(
    "The derivative is infinite at 0, and what comes from above times infinity is infinite, or NaN "
    "where it is 0.",
    "Keep the operand away from 0 before it goes in: `torch.sqrt(x + eps)`, `x.clamp(min=eps)`.",
)

BACKWARD: dict[str, Advice] = {
    **dict.fromkeys(("Sqrt", "Pow", "Norm", "LinalgVectorNorm", "Cdist"), _AT_ZERO),
    **dict.fromkeys(
        ("Log", "Log2", "Log10", "Log1P", "Div", "Reciprocal", "Rsqrt", "Xlogy"),
        Advice(
            "The derivative is infinite at 0, also where the forward result is not used.",
            "Keep the operand away from 0 before it goes in: `torch.log(x.clamp(min=eps))`.",
        ),
    ),
    **dict.fromkeys(
        ("Acos", "Asin", "Atanh", "Acosh", "Erfinv"),
        Advice(
            "The derivative is infinite at the ends of the interval (±1).",
            "Clamp to the inside of the interval, `x.clamp(-1 + 1e-6, 1 - 1e-6)`; for angles "
            "`torch.atan2` has no such ends.",
        ),
    ),
    **dict.fromkeys(
        ("LinalgEigh", "LinalgSvd", "LinalgEig", "LinalgQr"),
        Advice(
            "The derivative of eigenvectors and singular vectors divides by the differences of "
            "their values, which are 0 where two values are equal.",
            "Break the tie (add a small random diagonal), or use only the values, whose derivative "
            "is finite.",
        ),
    ),
    **dict.fromkeys(
        ("Exp", "Expm1", "Exp2", "Sinh", "Cosh"),
        Advice(
            "Its result is infinite, and a gradient of 0 times infinity is NaN.",
            "Clamp the exponent before it goes in: `torch.exp(x.clamp(max=80))`.",
        ),
    ),
}
BACKWARD_ELSE = Advice(
    "Its local derivative is not finite for these inputs.",
    "Look at the saved tensors in the evidence, and keep the operand away from such values.",
)
