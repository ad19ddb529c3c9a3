"""Which operations of torch cannot make NaN or infinity of ordinary gradients.

Their derivative is bounded by what they saved, so that a result which is not finite means that they
received or had saved such numbers, or that numbers grew too large for their dtype.  Divisions,
roots, powers, logarithms, norms, normalisations and whatever is not listed here may do it.
"""

from __future__ import annotations

_MOVING = """Alias AsStrided Broadcast Cat Chunk Clone ConstantPadNd Copy Diagonal Embedding Expand
    Flip Gather Index IndexSelect MaskedFill MaskedSelect Narrow Permute Repeat ReshapeAlias Roll
    Select Slice Split SplitWithSizes Squeeze Stack T ToCopy Transpose Tril Triu Unbind Unfold
    UnsafeSplit UnsafeView Unsqueeze View Where"""
_ADDING = """Abs Add Addbmm Addmm Addmv Addr Baddbmm Bmm Convolution Dot Mean Mm Mul Mv Neg Rsub Sub
    Sum"""
_ACTIVATING = """Dropout Elu Gelu Hardsigmoid Hardswish Hardtanh LeakyRelu LogSoftmax MseLoss
    NativeDropout NllLoss NllLoss2D Relu Sigmoid Silu Softmax Tanh Threshold"""
_POOLING = "AdaptiveAvgPool2D AvgPool2D MaxPool2DWithIndices MaxPool2D"

HARMLESS = frozenset(
    f"{op}Backward{number}"
    for op in f"{_MOVING} {_ADDING} {_ACTIVATING} {_POOLING}".split()
    for number in range(8)
)
"""Names of the types of such nodes."""
