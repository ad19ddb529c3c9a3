"""One model through six commands, each answer beside what plain torch says."""

from __future__ import annotations

from collections import Counter

import torch

from tests import beside
from tests.looking import Session
from tests.models.catalogue import LATEST, Model, leaves

WRONG = {"quantisation-aware training": "rounding counts as the identity"}
"""Models with a derivative that is not that of forward, and why."""


def examined(model: Model, session: Session) -> Counter[str]:
    """Hold every answer to what plain torch says, and count what was compared."""
    expected = model.run()
    one = beside.Examined(session, str(session.write(model.program)))
    one.counts.update(models=1, leaves=len(expected.leaves))
    graph = beside.comparable(one.backward(expected, _leaves))
    for report in (one.looked_at("trace"), one.looked_at("explain"), one.memory(model.bytes_kept)):
        assert beside.comparable(report) == graph
    is_wrong = model.name in WRONG
    assert one.check(is_wrong).is_wrong == is_wrong
    one.doctor(expected, _leaves)
    return one.counts


def _leaves() -> list[torch.Tensor]:
    """Those of the program that has ended, each time another one."""
    (loss,) = LATEST
    LATEST.clear()
    return leaves(loss)
