"""Which nodes were made under saved-tensor hooks, as torch before 2.13 does not tell it."""

from __future__ import annotations

import random
import threading
from typing import Any

import pytest
import torch

from gradscope.autograd import packing


def _numbers(seed: int) -> tuple[set[int], set[int]]:
    """The numbers of nodes that were made under hooks, and of others."""
    chance = random.Random(seed)
    x = torch.ones(1, requires_grad=True)
    depth, made = 0, (set[int](), set[int]())
    for _ in range(300):
        step = chance.random()
        if step < 0.2:
            packing.push()
            depth += 1
        elif step < 0.4 and depth:
            packing.pop()
            depth -= 1
        else:
            node: Any = (x * 2).grad_fn
            made[not depth].add(node._sequence_nr())
            assert packing.stood(node._sequence_nr()) or not depth
    for _ in range(depth):
        packing.pop()
    return made


@pytest.mark.parametrize("most", [10_000, 5])
def test_what_was_made_under_hooks_is_known(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "MAX_SPANS", most)
    monkeypatch.setattr(packing, "_threads", {})
    for seed in range(5):
        under, others = _numbers(seed)
        assert all(map(packing.stood, under))
        # What is so old that it was forgotten counts as packed; the newest never is.
        found = [number for number in sorted(others) if packing.stood(number)]
        assert found == sorted(others)[: len(found)]
        assert not found or most == 5
        assert not packing.stood(max(others | under) + 1)


def test_threads_that_follow_one_another_each_count_from_the_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(packing, "_threads", {})
    made: list[tuple[set[int], set[int]]] = []
    for seed in range(4):  # python gives the later ones the identity of the first
        one = threading.Thread(target=lambda seed=seed: made.append(_numbers(seed)))
        one.start()
        one.join()
    assert len(made) == 4
    assert all(packing.stood(number) for under, _ in made for number in under)
