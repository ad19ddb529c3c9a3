"""The names that ``-c`` code finds: torch, nn, F, torch's functions, and the ``--let`` leaves."""

from __future__ import annotations

import builtins
from collections.abc import Iterable
from typing import Any

import torch
from torch import nn

from gradscope.graphing.initial_gradient import parse_leaf


def fill(namespace: dict[str, Any], lets: Iterable[tuple[str, str]]) -> None:
    """Put the names into the namespace; python's own names (``sum``, ``max``) keep their meaning.

    Raises:
        RootError: when a ``--let`` value is no tensor.
    """
    for name in dir(torch):
        value = getattr(torch, name)
        # Classes, submodules and constants of torch would only hide the user's own names.
        is_function = type(value) in (type(torch.log), type(torch.einsum))
        if is_function and not name.startswith("_") and not hasattr(builtins, name):
            namespace[name] = value
    namespace.update(torch=torch, nn=nn, F=nn.functional)
    for name, text in lets:
        namespace[name] = parse_leaf(name, text, namespace)
