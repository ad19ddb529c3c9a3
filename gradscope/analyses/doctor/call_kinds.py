"""What is known of a torch function before any call of it: how its calls are taken."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import torch

from gradscope.analyses.doctor.values import may_pass
from gradscope.recording.torch_call import name_of_call

Sort = Literal["none", "event", "data", "call", "grad", "put", "switch", "hook"]

_SET_DATA = torch.Tensor.data.__set__  # type: ignore[attr-defined]

_READ = frozenset(["data", "T", "mT", "H", "mH", "real", "imag"])
"""Properties that give a tensor; of the others only ``grad`` matters."""

_HOOKS = frozenset(["register_hook", "register_post_accumulate_grad_hook"])

_NEVER = frozenset(
    [
        "dim",
        "size",
        "numel",
        "stride",
        "is_complex",
        "is_floating_point",
        "is_contiguous",
        "element_size",
        "data_ptr",
        "storage_offset",
        "untyped_storage",
        "retain_grad",
        "get_device",
        "has_names",
        "_record_function_enter_new",
        "_record_function_exit",
    ]
)


LOSSES = frozenset(
    [
        "binary_cross_entropy",
        "binary_cross_entropy_with_logits",
        "cross_entropy",
        "gaussian_nll_loss",
        "hinge_embedding_loss",
        "huber_loss",
        "kl_div",
        "l1_loss",
        "mse_loss",
        "multi_margin_loss",
        "multilabel_margin_loss",
        "multilabel_soft_margin_loss",
        "nll_loss",
        "poisson_nll_loss",
        "smooth_l1_loss",
        "soft_margin_loss",
    ]
)
"""Functions of torch that compare a prediction, given first, with a target."""


@dataclass(slots=True)
class Kind:
    """What is known of a torch function: how its calls are taken, and the places that make any; of
    a loss, ``recorded`` are those of which one had history.

    ``passes``: what :func:`~gradscope.analyses.doctor.values.may_pass` says of it.  ``data`` counts
    the calls at each place that had nothing to do with any graph.
    """

    func: Any
    sort: Sort
    name: str
    is_brief: bool
    is_loss: bool
    passes: bool | None
    places: set[int] = field(default_factory=set)
    recorded: set[int] = field(default_factory=set)
    data: dict[int, int] = field(default_factory=dict)


def kind_of(func: Any, is_plain: bool) -> Kind:
    """What is known of a function that was not met before.

    Args:
        func: the function.
        is_plain: it neither changes its operands nor calls backward.
    """
    sort, name = _sort_of(func), name_of_call(func)
    is_brief = is_plain and sort == "call" and name != "requires_grad_"
    return Kind(func, sort, name, is_brief, name in LOSSES, may_pass(name))


def _sort_of(func: Any) -> Sort:
    name = str(getattr(func, "__name__", func))
    if name in ("__get__", "__set__", "__delete__"):
        accessed = name_of_call(func)
        if accessed == "grad":
            return "grad" if name == "__get__" else "put"
        if name == "__set__":
            return "data" if func == _SET_DATA else "event"
        return "call" if accessed in _READ else "none"
    if name in _NEVER or name.startswith("_record_function_exit"):
        return "none"
    # `no_grad`, `enable_grad` and `set_grad_enabled` all come down to it.
    if func is torch._C._set_grad_enabled:
        return "switch"
    return "hook" if name in _HOOKS else "call"
