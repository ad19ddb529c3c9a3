"""Where the history of what a node took was cut: in graph, tree, listing and page."""

from __future__ import annotations

import json

import pytest

from gradscope.errors import ReportError
from gradscope.model import storage
from gradscope.model.invariants import check
from tests.looking import Session
from tests.reports import detached
from tests.test_page import packed

HEAD = """
import torch
w = torch.ones(3, requires_grad=True)
v = torch.ones(3, requires_grad=True)
y = w * 2
"""

# Each ends in a value h, of which w.sum() + h.sum() is the loss; what cut its history, and where.
CUTS = {
    "h = v * y.detach()": [("detach", 5)],
    "h = v + y.detach()": [("detach", 5)],
    "h = torch.cat([v, y.detach()])": [("detach", 5)],
    "h = torch.mul(input=v, other=y.detach())": [("detach", 5)],
    "h = v * y.data": [("data", 5)],
    "with torch.no_grad():\n    c = y * 3\nh = v * c": [("no grad", 6)],
    "c = y.detach()\nc = (c * 2).relu() + 1\nh = v * c": [("detach", 5)],
    "h = (v * y.detach()) * w.detach()": [("detach", 5), ("detach", 5)],
    "h = v * torch.where(v > 0, y.detach(), w.detach() + y.detach())": [("detach", 5)],
    "c = w * 2\nc.detach_()\nh = v * c": [("detach_", 6)],
    "with torch.no_grad():\n    c = (y * torch.ones(2, 1)).max(0).values\nh = v * c": [
        ("no grad", 6)
    ],
    "h = v * torch.stack(y.detach().chunk(3)).sum()": [("detach", 5)],
    "c = y[None, :, None].detach()\nh = torch.nn.functional.scaled_dot_product_attention("
    "v[None, :, None], c, c)": [("detach", 5)],
    "q = torch.nn.MultiheadAttention(3, 1)\nc = y[None].detach()\nh = q(v[None], c, c)[0]": [
        ("detach", 6)
    ],
}
WHOLE = {
    "h = v * y": "nothing is cut",
    "h = v * torch.zeros_like(y)": "of new content",
    "h = v * torch.ones(3)": "a constant",
    "h = v * (y > 1).float()": "a mask",
    "h = v[y.argmax()]": "an index",
    "c = y.detach().requires_grad_()\nh = v * c": "a leaf of its own",
    "y.detach()\nh = v * y": "cut, and used by nobody",
    "h = v * torch.ones(1).expand_as(y)": "of the shape of another",
    "h = v * torch.ones(3).view_as(y)": "viewed as another",
    "h = v * torch.arange(3).to(y)": "of the dtype of another",
    "h = v * torch.arange(3).type_as(y)": "of the type of another",
    "h = v * y.new_tensor([1.0, 2.0, 3.0])": "new beside another",
    "h = v * y.data.new(3).normal_()": "new, and filled",
    "h = v * y.detach().clone().normal_()": "overwritten by noise",
    "c = y.detach().clone()\nc.zero_()\nh = v * c": "overwritten by zeros",
    "c = torch.zeros(3)\nc.detach_()\nh = v * c": "detached, and had no history",
    "c, _ = torch.broadcast_tensors(torch.ones(1), y)\nh = v * c": "beside one with a history",
    "c = y.detach().clone()\nc.copy_(torch.ones(3))\nh = v * c": "overwritten by a copy",
}


def walls(session: Session, body: str, command: str = "backward") -> list[tuple[str, int, str]]:
    """What cut, its line, and the operation that took what came of it."""
    session.told(f"{HEAD}{body}\n(h.sum() + w.sum()).backward()\n", command, "-o", "run.json")
    graph = json.loads((session.folder / "run.json").read_bytes())["graph"]
    return [
        (
            one["function"],
            graph["origins"][one["origin"]]["line"],
            graph["nodes"][one["node"]]["op"],
        )
        for one in graph.get("walls", ())
    ]


@pytest.mark.parametrize("body", [*CUTS, *WHOLE])
def test_what_cut_is_known_where_it_is_taken(body: str, session: Session) -> None:
    assert [found[:2] for found in walls(session, body)] == CUTS.get(body, [])


def test_the_doctor_knows_them_too(session: Session) -> None:
    assert walls(session, "h = v * y.detach()", "doctor") == [("detach", 5, "MulBackward0")]


def told_below(listed: str) -> dict[str, str]:
    """The row below each line of a listing, by the number of the line."""
    rows = [*listed.splitlines(), ""]
    return {
        row.split()[0]: rows[at + 1] for at, row in enumerate(rows) if row[:1].strip().isdigit()
    }


def test_they_stand_in_tree_listing_and_page(session: Session) -> None:
    body = "c = y.detach()\n# taken below\nh = v * c\n(h.sum() + w.sum()).backward()\n"
    done = session.told(HEAD + body, "backward --width 120")
    rows = [row.strip(" │├─└") for row in done.out.splitlines()]
    assert "history cut: detach program.py:5" in rows
    # Where a line has little room beside it, too.
    listed = session.cli("backward", "program.py", "--width", "60", "--format", "code").out
    below = told_below(listed)
    assert below["5"] == "  history cut here"
    assert below["7"] == "  history cut: detach program.py:5"
    page = session.folder / "run.html"
    session.cli("backward", "program.py", "-o", str(page))
    data = packed(page.read_text("utf-8"))
    (wall,) = data["walls"]
    place = wall["origin"]
    assert (wall["function"], data["origins"]["line"][place]) == ("detach", 5)
    assert data["strings"][data["nodes"]["op"][wall["node"]]] == "MulBackward0"


def test_the_listing_names_them_at_parts_and_not_at_lines_that_ran_with_a_history(
    session: Session,
) -> None:
    text = """
import torch
net = torch.nn.Linear(3, 3)
def model(x):
    return net(x).tanh()
x = torch.ones(2, 3)
with torch.no_grad():
    goal = model(x)
loss = (model(x) - goal).pow(2).mean() + (net(x) * goal).sum()
loss.backward()
"""
    listed = session.told(text, "backward --width 140 --format code").out
    below = told_below(listed)
    assert below["8"] == "  history cut: grad was off at program.py:4"
    assert "history cut" not in below["4"]


@pytest.mark.parametrize("field", ["node", "origin"])
def test_a_wall_elsewhere_is_refused(field: str) -> None:
    report = json.loads(storage.encode(detached()))
    report["graph"]["walls"][0][field] = 99
    with pytest.raises(ReportError, match=rf"graph\.walls\.{field}"):
        check(storage.decode(json.dumps(report).encode()))
