"""Which nodes the backward of each node makes, when a pass runs with ``create_graph``.

Knows nothing of places or of the Report.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch

from gradscope.autograd.calls import edge_of
from gradscope.autograd.nodes import is_leaf
from gradscope.autograd.walk import make_release_safe, walk

Note = Callable[[int, int, int], None]
"""Takes the sequence numbers before and after a node ran, and the node's own."""

_sequence: Callable[[], int] = torch._C._autograd._get_sequence_nr


@contextmanager
def watched_nodes(roots: Sequence[Any], note: Note) -> Iterator[None]:
    """While the block runs, tell which sequence numbers each node below these roots used up.

    Nodes that run in another thread, as those of an accelerator do, count for themselves there and
    are not told of.
    """
    walked = walk(edge_of(root)[0] for root in roots)
    # Python knows every node from here on, and torch would free a deep chain of such recursively.
    make_release_safe(walked)
    home = threading.get_ident()
    started: dict[int, int] = {}
    handles = []

    def before(number: int, _received: Any) -> None:
        started[number] = _sequence()

    def after(number: int, forward: int, _sent: Any, _received: Any) -> None:
        first, end = started.pop(number, None), _sequence()
        if first is not None and first < end and threading.get_ident() == home:
            note(first, end, forward)

    try:
        for number, node in enumerate(walked.nodes):
            # A leaf adds to `.grad`, and has no backward of its own to be told apart.
            if not is_leaf(node):
                handles.append(node.register_prehook(partial(before, number)))
                handles.append(node.register_hook(partial(after, number, node._sequence_nr())))
        yield
    finally:
        for handle in handles:
            handle.remove()
