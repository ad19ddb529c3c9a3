"""Which leaves backward from a tensor would reach."""

from __future__ import annotations

import torch

from gradscope.autograd.calls import edge_of
from gradscope.autograd.isolation import unseen
from gradscope.autograd.nodes import leaf_of
from gradscope.autograd.walk import walk
from gradscope.graphing.roots import usable_root
from gradscope.recording.recorder import Recorder


def reached(root: torch.Tensor) -> list[torch.Tensor]:
    """The leaves that backward from ``root`` would bring a gradient.

    Raises:
        RootError: when the root carries no gradient history.
    """
    recorder = Recorder.active or Recorder()
    with unseen():
        root = usable_root(root, "the root", "root", recorder)
        walked = walk([edge_of(root)[0]])
        leaves = map(leaf_of, walked.nodes)
        return [leaf for leaf in leaves if leaf is not None]
