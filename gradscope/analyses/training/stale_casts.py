"""Casts of parameters that autocast has kept although a step has changed the parameters since.

While its region lasts autocast casts each parameter once.  Looked at before each backward call
inside of such a region, by the sequence numbers of the graph's nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import FrameType
from typing import NamedTuple

import torch
from torch.amp.autocast_mode import is_autocast_available
from torch.autograd.graph import Node

from gradscope.autograd.nodes import leaf_of, torch_name
from gradscope.recording.names import value_in_frame
from gradscope.recording.places import Places, frames_from
from gradscope.recording.source import Sources

_CAST = "ToCopyBackward0"


class Cast(NamedTuple):
    """A node that casts a leaf: its sequence number, and the leaf."""

    sequence: int
    leaf: torch.Tensor


def kept_casts(nodes: Iterable[Node], leaves: Iterable[torch.Tensor]) -> list[Cast]:
    """The casts in a graph; none unless autocast is on, and keeps them."""
    if not (torch.is_autocast_cache_enabled() and torch._C._is_any_autocast_enabled()):
        return []
    kinds = {leaf.device.type for leaf in leaves}
    if not any(is_autocast_available(kind) and torch.is_autocast_enabled(kind) for kind in kinds):
        return []
    return list(_casts(nodes))


def _casts(nodes: Iterable[Node]) -> Iterator[Cast]:
    for node in nodes:
        if is_cast(node):
            below = node.next_functions[0][0]
            leaf = None if below is None else leaf_of(below)
            if leaf is not None:
                yield Cast(node._sequence_nr(), leaf)


def is_cast(node: Node) -> bool:
    """Whether a node gives a tensor another dtype or device."""
    return torch_name(node) == _CAST


def region(frame: FrameType, places: Places, sources: Sources) -> int:
    """The place of the ``with`` that switched autocast on around what runs in a frame; -1 where
    none is in sight."""
    for one in frames_from(frame, places):
        for line, texts in sources.blocks(one.f_code, one.f_lineno):
            if any("autocast" in text or _is_autocast(text, one) for text in texts):
                return places.number_of_line(one.f_code, line)
    return -1


def _is_autocast(text: str, frame: FrameType) -> bool:
    named = text.replace(".", "").isidentifier()
    return named and type(value_in_frame(text, frame)) is torch.autocast
