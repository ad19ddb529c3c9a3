"""All operators of torch's database.  Not collected by itself: ``make test-ops`` runs it, and
``test_sample.py`` a part of it in a process of its own, because the database changes torch
globally when it is imported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.autograd.gradcheck import GradcheckError, gradcheck
from torch.utils import _pytree as pytree

from tests.looking import Session
from tests.operators import plain
from tests.operators.database import Case, cases, operators
from tests.operators.examined import WRONG, Examined

UNABLE = {
    "nn.functional.one_hot": "takes whole numbers only",
    "torch.ops.aten._efficient_attention_forward": "runs on CUDA only",
    "torch.ops.aten._flash_attention_forward": "runs on CUDA only",
}
"""Operators that plain torch cannot run here, though the database gives them a backward."""

# What torch warns of is plain torch's, too.
pytestmark = pytest.mark.filterwarnings("ignore")

# The tensors are small, and there is a process on each core.
torch.set_num_threads(1)

Record = Callable[[str, object], None]


@pytest.mark.parametrize("name", sorted(set(operators()) - set(UNABLE)))
def test_every_command_is_right_about(name: str, session: Session, record_property: Record) -> None:
    dtypes: set[str] = set()
    record_property("operators", 1)
    for case in cases(name):
        examined = Examined(case, session)
        examined.all(by_the_doctor=case.dtype not in dtypes)
        dtypes.add(case.dtype)
        for word, count in examined.counts.items():
            record_property(word, count)
    assert dtypes


@pytest.mark.parametrize("name", UNABLE)
def test_plain_torch_cannot_run(name: str) -> None:
    for case in cases(name):
        with pytest.raises((RuntimeError, NotImplementedError)):
            plain.run(case)


@pytest.mark.parametrize("name", WRONG)
def test_plain_torch_is_wrong_about(name: str, session: Session) -> None:
    bad = [case for case in cases(name) if not is_right(case)]
    assert bad
    assert any(Examined(case, session).checked().is_wrong for case in bad)


def is_right(case: Case) -> bool:
    """Whether torch's own check passes, and the gradient of finite numbers is finite."""
    gradients = plain.run(case).leaves
    wide = {"float32": "float64", "complex64": "complex128"}[case.dtype]
    made = Case(case.name, wide, case.number).make()
    parts, spec = pytree.tree_flatten((made.input, made.args, made.kwargs))
    places = [place for place, one in enumerate(parts) if any(one is leaf for leaf in made.leaves)]

    def again(*leaves: torch.Tensor) -> Any:
        moved = dict(zip(places, leaves, strict=True))
        flat = [moved.get(place, one) for place, one in enumerate(parts)]
        input, args, kwargs = pytree.tree_unflatten(flat, spec)
        return made.chosen(made.function(input, *args, **kwargs))

    try:
        return gradcheck(again, made.leaves) and all(
            one is None or bool(one.isfinite().all()) for one in gradients
        )
    except GradcheckError:
        return False
