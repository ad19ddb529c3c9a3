"""Which operations of torch cannot make NaN or infinity of ordinary gradients.

Harmless is an operation whose derivative is bounded where its result is finite, so that backward
goes wrong only where it receives or has saved NaN or infinity, or where numbers grow too large for
their dtype.  A division by 0 or a logarithm of 0 shows in its result already.  Roots, powers,
norms, spreads, inverse functions, decompositions, custom Functions and whatever is not listed here
may do it unseen.
"""

from __future__ import annotations

from torch.autograd.graph import Node as LiveNode

_MOVING = """Alias AsStrided Cat Chunk Clone ConstantPadNd Copy Diagonal Embedding Expand Flip
    Gather Index IndexSelect MaskedFill MaskedSelect Narrow Permute Repeat ReshapeAlias Roll Select
    Slice Split SplitWithSizes Squeeze Stack T ToCopy Transpose Tril Triu Unbind Unfold UnsafeSplit
    UnsafeView Unsqueeze View Where"""
_ADDING = """Abs Add Addbmm Addmm Addmv Addr Baddbmm Bmm Convolution Dot Exp Log Mean Mm Mul Mv Neg
    Rsub Sub Sum"""
_ACTIVATING = """Dropout Elu Gelu Hardsigmoid Hardswish Hardtanh LeakyRelu LogSoftmax MseLoss
    NativeDropout NllLoss NllLoss2D Relu Sigmoid Silu Softmax Tanh Threshold"""
_NORMALISING = "NativeBatchNorm NativeGroupNorm NativeLayerNorm"
_POOLING = "AdaptiveAvgPool2D AvgPool2D MaxPool2DWithIndices"


def _types(ops: str) -> frozenset[str]:
    """The names of the types of such nodes; torch numbers the variants of an operation."""
    return frozenset(f"{op}Backward{number}" for op in ops.split() for number in range(8))


_HARMLESS = _types(f"{_MOVING} {_ADDING} {_ACTIVATING} {_NORMALISING} {_POOLING}")
_DIVISIONS = _types("Div")


def is_harmless(node: LiveNode) -> bool:
    """Whether a node is of an operation that is harmless."""
    kind = type(node).__name__
    # Division by something that gets a gradient itself has its square in the derivative.
    return kind in _HARMLESS or (kind in _DIVISIONS and node.next_functions[1][0] is None)
