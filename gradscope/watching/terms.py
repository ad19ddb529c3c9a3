"""What each term of a loss brings to the parts of a model, measured before the backward call.

The graph was not recorded: a term is called by the variable that holds it, or by its operation.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch

from gradscope.autograd.calls import BackwardCall
from gradscope.autograd.nodes import leaf_of
from gradscope.errors import GradscopeError
from gradscope.graphing.study import studied_call
from gradscope.model.request import SplitStudy
from gradscope.model.rows import TermRow
from gradscope.model.studies import Combined, Split, SplitLeaf
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
        call = BackwardCall.own([*roots], [*gradients], [], sys._getframe(), lambda: None)
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
        return dict(_told(split, parts))


def _told(split: Split, parts: Mapping[str, list[SplitLeaf]]) -> Iterator[tuple[str, TermRow]]:
    reached = {name: Combined(leaves) for name, leaves in parts.items() if leaves}
    if not reached:
        return
    whole = Combined([leaf for leaves in parts.values() for leaf in leaves])
    # Of one without a name the number is that of a node, and another one in each step.
    names = [piece.plain_name for piece in split.pieces]
    for at, name in enumerate(names):
        yield (
            name if names.count(name) == 1 else f"{name} {names[: at + 1].count(name)}",
            TermRow(
                norm=whole.norms[at],
                share=whole.shares[at],
                cosine=whole.against_others(at),
                modules={part: one.norms[at] for part, one in reached.items() if one.norms[at]},
            ),
        )
