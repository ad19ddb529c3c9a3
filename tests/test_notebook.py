"""What a notebook shows: one is executed, and its outputs are read."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any
from xml.etree import ElementTree

import nbformat
import pytest
from nbclient import NotebookClient

import gradscope
from gradscope.model import storage
from tests.reports import transformer

OPERATIONS = ("tanh", "sin", "sigmoid", "cos", "atan")
CELLS = {
    "begin": "import torch, gradscope\n"
    "w = torch.tensor([1., 2, 3], requires_grad=True)\n"
    "loss = (w * w).sum()",
    "report": "report = gradscope.backward(loss)\nreport",
    "page": "report.page(height=300)",
    # In no order that could be folded.
    "large": "a0 = w\n"
    + "".join(f"a{n + 1} = torch.{OPERATIONS[int(str(2**300)[n]) // 2]}(a{n})\n" for n in range(70))
    + "gradscope.backward(a70.sum())",
    "wrong height": "report.page(height=0)",
    "load": "%load_ext gradscope",
    "magic": "%gradscope loss",
    "vector": "%gradscope w * 2",
    "saved": "%gradscope report",
    "no tensor": "%gradscope 5",
    "nothing": "%gradscope",
    "no expression": "%gradscope loss loss",
    "no history": "%gradscope torch.ones(2)",
    "unknown": "%gradscope nothing_like_it",
    "unchanged": "print(w.grad, loss.grad_fn is not None)",
}


@pytest.fixture(scope="module")
def outputs() -> dict[str, list[Any]]:
    """The outputs of each cell."""
    cells = [nbformat.v4.new_code_cell(text) for text in CELLS.values()]  # type: ignore[no-untyped-call]
    notebook = nbformat.v4.new_notebook(cells=cells)  # type: ignore[no-untyped-call]
    NotebookClient(notebook, timeout=60, allow_errors=True).execute()
    return dict(zip(CELLS, (cell.outputs for cell in notebook.cells), strict=True))


@pytest.mark.parametrize("cell", ["report", "magic", "vector", "saved"])
def test_a_small_graph_is_a_picture(cell: str, outputs: dict[str, list[Any]]) -> None:
    (shown,) = outputs[cell]
    assert set(shown.data) == {"text/plain", "image/svg+xml"}
    assert len(shown.data["text/plain"]) <= 200
    assert ElementTree.fromstring(shown.data["image/svg+xml"]).tag.endswith("svg")


def test_the_number_gets_a_gradient_and_the_vector_none(outputs: dict[str, list[Any]]) -> None:
    assert outputs["magic"][0].data["text/plain"].startswith("<Report loss: 3 nodes, 1 leaf, ‖g‖")
    assert "‖g‖" not in outputs["vector"][0].data["text/plain"]


def test_a_large_one_is_the_tree_in_colours(outputs: dict[str, list[Any]]) -> None:
    (shown,) = outputs["large"]
    assert set(shown.data) == {"text/plain", "text/html"}
    tree = shown.data["text/html"]
    assert tree.startswith("<pre style=") and "color: #" in tree and "Atan" in tree


def test_the_page_is_in_a_sandbox(outputs: dict[str, list[Any]]) -> None:
    (shown,) = outputs["page"]
    frame = shown.data["text/html"]
    assert 'sandbox="allow-scripts allow-downloads"' in frame and "height: 300px" in frame
    assert len(shown.data["text/plain"]) <= 300
    # Nothing of the page ends the attribute that holds it.
    assert frame.count('"') == frame.count('="') * 2


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        (
            "no tensor",
            "UsageError: %gradscope: the root is of type int, not a tensor\n"
            "name a tensor that requires grad\n",
        ),
        ("nothing", "UsageError: %gradscope needs a tensor, such as: %gradscope loss\n"),
        ("no expression", "UsageError: %gradscope takes an expression, not: loss loss\n"),
        (
            "no history",
            "UsageError: %gradscope: the root carries no gradient history: it does not require "
            "grad\nnothing it was made from requires grad\n",
        ),
    ],
)
def test_what_is_no_graph_is_said(cell: str, said: str, outputs: dict[str, list[Any]]) -> None:
    (shown,) = outputs[cell]
    assert shown.text == said


@pytest.mark.parametrize(
    ("cell", "kind", "words"),
    [
        ("unknown", "NameError", "name 'nothing_like_it' is not defined"),
        ("wrong height", "TypeError", "page() takes a height in pixels, not 0"),
    ],
)
def test_errors_are_those_of_python(
    cell: str, kind: str, words: str, outputs: dict[str, list[Any]]
) -> None:
    (shown,) = outputs[cell]
    assert (shown.ename, shown.evalue) == (kind, words)


def test_nothing_is_changed(outputs: dict[str, list[Any]]) -> None:
    assert outputs["unchanged"][0].text == "None True\n"


def test_without_graphviz_a_small_graph_is_the_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADSCOPE_DOT", "/no/such/dot")
    report = gradscope.Report.of(transformer(2))
    shown = report._repr_mimebundle_()
    assert set(shown) == {"text/plain", "text/html"}
    assert re.sub("<[^>]*>", "", shown["text/html"]).strip()


def test_a_notebook_needs_no_torch(tmp_path: Any) -> None:
    """A saved report is shown where there is none."""
    file = tmp_path / "report.json"
    file.write_bytes(storage.encode(transformer(2)))
    text = (
        "import sys, gradscope\n"
        f"report = gradscope.load({str(file)!r})\n"
        "report._repr_mimebundle_(); report.page()._repr_html_()\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", text], check=True)
