"""The tables of derivatives as a textbook writes them, by operation and operand.

Texts and nothing else; :mod:`gradscope.notation.derivatives` fills them in.  What is not here has
no notation, only torch's own formula.  The source is ``derivatives.yaml`` of torch, read as
mathematics, for real numbers.
"""

from __future__ import annotations

INFIX: dict[str, tuple[str, str, str]] = {
    "Mul": ("self", " × ", "other"),
    "Add": ("self", " + ", "other"),
    "Sub": ("self", " - ", "other"),
    "Rsub": ("other", " - ", "self"),
    "Div": ("self", "/", "other"),
    "Pow": ("self", "^", "exponent"),
    "Mm": ("self", " @ ", "mat2"),
    "Bmm": ("self", " @ ", "mat2"),
    "Mv": ("self", " @ ", "vec"),
    "Dot": ("self", " @ ", "tensor"),
}
"""Operations that are written with a sign, and the arguments on both sides of it."""

_BOTH = ("self", "other")

ELEMENTWISE: dict[str, dict[str, str]] = {
    "Add": {"self": "1", "other": "1"},
    "Sub": {"self": "1", "other": "-1"},
    "Rsub": {"self": "-1", "other": "1"},
    "Mul": {"self": "{other_}", "other": "{self_}"},
    "Div": {"self": "1/{other}", "other": "-{self}/{other}²"},
    "Neg": {"self": "-1"},
    "Pow": {
        "self": "{exponent} × {self}^({exponent_} - 1)",
        "exponent": "{self}^{exponent} × ln({self_})",
    },
    "Clone": {"self": "1"},
    "ToCopy": {"self": "1"},
    "Alias": {"self": "1"},
    "Reciprocal": {"self": "-1/{self}²"},
    "Abs": {"self": "sign({self_})"},
    "Exp": {"self": "exp({self_})"},
    "Exp2": {"self": "ln 2 × 2^{self}"},
    "Expm1": {"self": "exp({self_})"},
    "Log": {"self": "1/{self}"},
    "Log2": {"self": "1/({self} × ln 2)"},
    "Log10": {"self": "1/({self} × ln 10)"},
    "Log1P": {"self": "1/(1 + {self})"},
    "Sqrt": {"self": "1/(2 × √{self})"},
    "Rsqrt": {"self": "-1/(2 × {self} × √{self})"},
    "Sin": {"self": "cos({self_})"},
    "Cos": {"self": "-sin({self_})"},
    "Tan": {"self": "1 + tan({self_})²"},
    "Asin": {"self": "1/√(1 - {self}²)"},
    "Acos": {"self": "-1/√(1 - {self}²)"},
    "Atan": {"self": "1/(1 + {self}²)"},
    "Sinh": {"self": "cosh({self_})"},
    "Cosh": {"self": "sinh({self_})"},
    "Tanh": {"self": "1 - tanh({self_})²"},
    "Erf": {"self": "2/√π × exp(-{self}²)"},
    "Sigmoid": {"self": "σ({self_}) × (1 - σ({self_}))"},
    "LogSigmoid": {"self": "1 - σ({self_})"},
    "Silu": {"self": "σ({self_}) × (1 + {self} × (1 - σ({self_})))"},
    "Elu": {
        "self": "{scale} where {self} > 0, else {scale} × {alpha} × {input_scale} × "
        "exp({input_scale} × {self_})"
    },
    "Softplus": {"self": "σ({beta} × {self_}), and 1 where {beta} × {self} > {threshold}"},
    "Gelu": {"self": "Φ({self_}) + {self} × φ({self_})"},
    "Relu": {"self": "1 where {self} > 0, else 0"},
    "LeakyRelu": {"self": "1 where {self} > 0, else {negative_slope}"},
    "Hardtanh": {"self": "1 between {min_val_} and {max_val_}, else 0"},
    "Hardsigmoid": {"self": "1/6 between -3 and 3, else 0"},
    "Clamp": {"self": "1 between the limits, else 0"},
    "ClampMin": {"self": "1 where {self} ≥ {min}, else 0"},
    "ClampMax": {"self": "1 where {self} ≤ {max}, else 0"},
    "Maximum": dict.fromkeys(_BOTH, "1 where it is the larger, 1/2 where both are equal, else 0"),
    "Minimum": dict.fromkeys(_BOTH, "1 where it is the smaller, 1/2 where both are equal, else 0"),
    "Where": dict.fromkeys(_BOTH, "1 where it was taken, else 0"),
    "MaskedFill": {"self": "0 where the mask is, else 1"},
    "NativeDropout": {"input": "1/(1 - p) where kept, else 0"},
}
"""∂(operation)/∂argument, element by element.  ``{self}`` is that operand with brackets where they
are needed, ``{self_}`` without; factors of 1 are left out."""

_SHAPED = {"self": "the same numbers in the operand's shape"}
_SWAPPED = {"self": "the upstream, its dimensions swapped back"}
_COPIES = {"self": "the upstream, summed over the copies"}
_PLACES = {"self": "the upstream at the places that were taken, 0 elsewhere"}
_ADDED = {"self": "the upstream added at the places that were taken, 0 elsewhere"}
_JOINED = {"self": "the upstreams of all parts, joined"}
_PART = {"tensors": "its own part of the upstream"}
_PRODUCT = {"self": "upstream @ {mat2}ᵀ", "mat2": "{self}ᵀ @ upstream"}
_CORRECTION = "the correction is 1 if not given"
_TAKEN = "the upstream at the element that was taken, 0 elsewhere"
_CHOSEN = {"self": f"{_TAKEN}; equal ones share it where no dim is given"}
_SHARED = {"self": "the upstream, spread over its window"}
_OF_MEAN = "where the loss is a mean, divided by"
_WHERE_USED = "over all results that the element is used for"
_NORMALIZED = {
    "weight": "upstream × x̂, summed; x̂ is the normalized input",
    "bias": "the upstream, summed where {bias} was repeated",
}
_CENTRED = (
    "(g - mean(g) - x̂ × mean(g × x̂))/√(var + eps); g = upstream × weight, x̂ = normalized input, "
    "means over what is normalized together"
)

LINEAR: dict[str, dict[str, str]] = {
    "Sum": {"self": "1 for every element that is summed"},
    "Mean": {"self": "1/n for each of the n elements"},
    "Prod": {"self": "upstream × the product of all elements but this one"},
    "Var": {"self": f"upstream × 2 × ({{self}} - mean)/(n - correction); {_CORRECTION}"},
    "Std": {"self": f"upstream × ({{self}} - mean)/((n - correction) × std); {_CORRECTION}"},
    "Cumsum": {"self": "the upstream, summed from each element to the end"},
    "View": _SHAPED,
    "ReshapeAlias": _SHAPED,
    "UnsafeView": _SHAPED,
    "Squeeze": _SHAPED,
    "Unsqueeze": _SHAPED,
    "T": _SWAPPED,
    "Transpose": _SWAPPED,
    "Permute": {"self": "the upstream, its dimensions put back in order"},
    "Expand": _COPIES,
    "Repeat": _COPIES,
    "Select": {"self": "the upstream at the place that was taken, 0 elsewhere"},
    "Slice": _PLACES,
    "Topk": _PLACES,
    "Index": _ADDED,
    "IndexSelect": _ADDED,
    "Gather": _ADDED,
    "Embedding": {"weight": "the upstream added to the rows that were looked up, 0 elsewhere"},
    "Sort": {"self": "the upstream, put back in the order before"},
    "Max": _CHOSEN,
    "Min": _CHOSEN,
    "Median": _CHOSEN,
    "Nanmedian": _CHOSEN,
    "Kthvalue": {"self": _TAKEN},
    "Mode": {"self": _TAKEN},
    "Amax": {"self": "the upstream at the largest element, shared by equal ones, 0 elsewhere"},
    "Amin": {"self": "the upstream at the smallest element, shared by equal ones, 0 elsewhere"},
    "MseLoss": {
        "self": f"2 × ({{self}} - {{target}}), times the upstream; {_OF_MEAN} n",
        "target": f"2 × ({{target}} - {{self}}), times the upstream; {_OF_MEAN} n",
    },
    "NllLoss": {
        "self": "-w at each target (w: the weight of its class, or 1), 0 elsewhere, times the "
        f"upstream; {_OF_MEAN} Σw"
    },
    "LinalgVectorNorm": {
        "self": "upstream × sign({self_}) × (|{self_}|/‖{self_}‖)^(p - 1), p being 2 if not given; "
        "0 where the norm is 0, and shared by the largest where p is inf"
    },
    "Logsumexp": {"self": "upstream × softmax({self_})"},
    "Split": _JOINED,
    "Unbind": _JOINED,
    "Cat": _PART,
    "Stack": _PART,
    "Mm": _PRODUCT,
    "Bmm": _PRODUCT,
    "Mv": {"self": "upstream ⊗ {vec}", "vec": "{self}ᵀ @ upstream"},
    "Dot": {"self": "upstream × {tensor}", "tensor": "upstream × {self}"},
    "Addmm": {
        "self": "the upstream, summed where {self} was repeated",
        "mat1": "upstream @ {mat2}ᵀ",
        "mat2": "{mat1}ᵀ @ upstream",
    },
    "Baddbmm": {
        "self": "the upstream, summed where {self} was repeated",
        "batch1": "upstream @ {batch2}ᵀ",
        "batch2": "{batch1}ᵀ @ upstream",
    },
    "Addmv": {
        "self": "the upstream, summed where {self} was repeated",
        "mat": "upstream ⊗ {vec}",
        "vec": "{mat}ᵀ @ upstream",
    },
    "Linear": {
        "input": "upstream @ {weight}",
        "weight": "upstreamᵀ @ {input}",
        "bias": "the upstream, summed over the rows",
    },
    "Softmax": {"self": "s × (upstream - Σ s × upstream); s is the result, Σ goes along dim"},
    "LogSoftmax": {"self": "upstream - softmax × Σ upstream; Σ goes along dim"},
    "NativeLayerNorm": {"input": _CENTRED, **_NORMALIZED},
    "NativeGroupNorm": {"input": f"in each group {_CENTRED}", **_NORMALIZED},
    "NativeBatchNorm": {"input": f"in eval g/√(var + eps), in training {_CENTRED}", **_NORMALIZED},
    "MaxPool2DWithIndices": {"self": "the upstream added at the largest of each window"},
    "AvgPool2D": _SHARED,
    "AdaptiveAvgPool2D": _SHARED,
    "UpsampleNearest1D": _COPIES,
    "UpsampleNearest2D": _COPIES,
    "UpsampleNearest3D": _COPIES,
    "UpsampleBilinear2D": {"self": "the upstream, with the weights of the interpolation"},
    "Convolution": {
        "input": f"Σ upstream × weight of the kernel, {_WHERE_USED}",
        "weight": f"Σ upstream × {{input}}, {_WHERE_USED}",
        "bias": "the upstream, summed over all places",
    },
}
"""What is sent to an operand, where that is not a factor for each element."""

HOLOMORPHIC = {
    *("Add", "Sub", "Rsub", "Mul", "Div", "Neg", "Clone", "Alias", "Reciprocal", "Pow"),
    *("Exp", "Exp2", "Expm1", "Log", "Log2", "Log10", "Log1P", "Sqrt", "Rsqrt", "Sigmoid"),
    *("Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Tanh"),
}
"""Operations on complex numbers that have a complex derivative.  What torch sends is the upstream
times its conjugate (the convention of torch's notes on autograd for complex numbers)."""

SIGNS = {
    "@ [[": "×: element by element. @: the matrix product of the upstream gradient, written as one "
    "row, and the local derivative, which has a row for each element of the result.",
    " ‖": "‖2.5‖: the norm of a tensor of too many numbers to write out, √ of the "
    "sum of their squares",
    "σ": "σ: the sigmoid",
    "Φ": "Φ, φ: the standard normal distribution and its density; gelu with "
    "approximate='tanh' comes near it",
}
"""What signs of this notation stand for that not every reader knows."""
