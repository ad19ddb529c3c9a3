"""Families of operations, by their names without the ending; torch changes them seldom."""

from __future__ import annotations


def _family(words: str) -> frozenset[str]:
    return frozenset(words.split())


FILLS = _family(
    "MaskedFill Where WhereSelf IndexPut IndexFill Scatter MaskedScatter CopySlices Copy Fill Full "
    "ConstantPadNd"
)
"""They write numbers which the program chose; infinity there is meant as a mask."""

_MASKABLE = _family("Add Sub Baddbmm")


def is_maskable(op: str) -> bool:
    """Whether an operation takes such a mask as an operand."""
    return op in _MASKABLE or op.startswith("ScaledDotProduct")


def is_attention(op: str) -> bool:
    """Whether an operation weighs by a softmax."""
    return op == "Softmax" or op.startswith("ScaledDotProduct")


GROWING = _family(
    "Mul Mm Addmm Bmm Baddbmm Pow Exp Sum Add Sub Convolution Square Cumsum Prod Linear Matmul Mv "
    "Dot Norm LinalgVectorNorm Mean ToCopy Addcmul Conv1D Einsum Sinh Cosh MkldnnLinear"
)
"""Their result can be too large for a dtype without being undefined."""

MEETING = _family(
    "Mm Addmm Bmm Baddbmm Convolution Linear Matmul Mv Dot Conv1D Einsum MkldnnLinear Cumsum"
)
"""Of these, those in which infinities of both signs may meet."""

VIEWS = _family("T View UnsafeView Reshape Transpose Permute Unsqueeze Squeeze Expand Select Slice")

ACCUMULATING = _family("Pow Square Mul Sum Mean Norm LinalgVectorNorm Cumsum Prod Dot Var Std")
"""Of these, those that nobody takes to write -inf as a mask."""

MOVING = VIEWS | _family(
    "Cat Stack Gather Index IndexSelect Clone Repeat Roll Flip Split Unbind Tril Triu"
)
"""Their results hold only numbers of their operands."""

PASSING = MOVING | _family(
    "Relu LeakyRelu Elu Gelu Silu Mish Softplus Sigmoid LogSigmoid Tanh Hardtanh Hardsigmoid "
    "Hardswish Clamp ClampMin ClampMax Threshold Neg Abs NativeDropout"
)
"""Their results are finite where their operands are."""

STEPS = _family("Round Sign Sgn Floor Ceil Trunc Heaviside Fix RoundDecimals FloorDivide")


LIMITS = _family(
    "Clamp ClampMin ClampMax Clip Hardtanh Hardsigmoid Hardswish Threshold Relu6 Hardshrink "
    "Softshrink"
)

RECTIFIERS = _family("Relu Threshold ClampMin Clamp")
"""They are also the hinge of a loss with a margin."""

TOTALS = _family("Mean Sum Add Mul Div Pow Square Dot NanToNum")
"""They make one loss of many terms without comparing it with a target."""

SCALING = _family("Mean Mul Div Mm Addmm Bmm Sum MseLoss Neg ToCopy L1Loss Expand Abs")
"""Their local derivative is 0 only where an operand is."""

WEIGHING = _family("Mm Addmm Bmm Baddbmm Mv Convolution MkldnnLinear Linear")
"""They multiply what goes in by the weight of a layer, where one of their operands is one."""


PRODUCTS = _family("Mul Mm Bmm Addmm Baddbmm Mv Dot Linear")
"""Their last two operands are the factors."""

LIKELIHOODS = ("Log", "BinaryCrossEntropy", "Xlogy", "KlDiv")
"""Beginnings of what takes the logarithm of a probability."""

ELEMENTWISE = _family("Add Sub Rsub Mul Div Neg Clamp ClampMin ClampMax Where Index Gather ToCopy")
"""What may stand between a probability and its logarithm."""
