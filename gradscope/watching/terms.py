"""What each term of a loss brings to the parts of a model, measured before the backward call.

The graph was not recorded: a term is called by the variable that holds it, or by its operation.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from gradscope.autograd.calls import BackwardCall
from gradscope.autograd.nodes import leaf_of
from gradscope.errors import GradscopeError
from gradscope.graphing.study import studied_call
from gradscope.model.request import SplitStudy
from gradscope.model.rows import TermRow, term_rows
from gradscope.model.studies import Split, SplitLeaf
from gradscope.recording.recorder import Recorder
from gradscope.watching.norms import ModelParameters


class TermNorms:
    """Measures terms; ``problem`` is told once why it cannot."""

    def __init__(self, problem: Callable[[str], None]) -> None:
        self._problem = problem
        self._has_told = False
        # Never started: it says which frames are the program's.
        self._recorder = Recorder()

    def of_call(
        self, roots: Sequence[Any], gradients: Sequence[torch.Tensor | None], own: ModelParameters
    ) -> Mapping[str, TermRow]:
        """The terms of a call that is about to be made, in their order; none where it has one, or
        where they cannot be sent alone."""
        call = BackwardCall([*roots], [*gradients], [], sys._getframe(), lambda: None)
        split: Split
        try:
            live, split = studied_call(SplitStudy("term", only_leaves=True), call, self._recorder)
        except GradscopeError as error:
            if not self._has_told:
                self._has_told = True
                self._problem(f"a backward call is not told by term: {error.what}")
            return {}
        parts: dict[str, list[SplitLeaf]] = {name: [] for name in own.parts}
        part_of = {at: name for name, positions in own.parts.items() for at in positions}
        for leaf in split.leaves:
            tensor = leaf_of(live.probe.walked.nodes[live.probe.graph.leaves[leaf.leaf].node])
            position = own.positions.get(id(tensor))
            if position is not None:
                parts[part_of[position]].append(leaf)
        return term_rows(split, parts)
