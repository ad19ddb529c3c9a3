"""A nested tensor that is a leaf: every command takes it, its ragged size is shown as ``?``."""

from __future__ import annotations

import pytest

from gradscope.model import storage
from gradscope.model.plain import RAGGED
from tests.looking import Session

LEAF = """
import torch
n = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], requires_grad=True)
torch.nested.to_padded_tensor(n, 0.0).sum().backward()
"""

COMMANDS = ("trace", "backward", "explain", "check", "memory", "doctor")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_takes_a_ragged_leaf(command: str, session: Session) -> None:
    done = session.told(LEAF, command)
    assert done.status == 0, done.err
    assert "negative size" not in done.err
    if command in ("trace", "backward"):
        assert "[2,?]" in done.out
    assert session.cli(command, "program.py", "-o", "nested.json").status == 0
    (leaf,) = storage.load(session.folder / "nested.json").graph.leaves
    assert leaf.tensor.shape == (2, RAGGED)
    shown = session.cli("show", "nested.json")
    assert (shown.status, "[2,?]" in shown.out) == (0, True), shown.err
    compared = session.cli("diff", "nested.json", "nested.json")
    assert compared.status == 0 and "identical" in compared.out, compared.err
