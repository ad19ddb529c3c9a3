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
from tests.looking import own_words
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
    "unchanged": "print(w.grad, loss.grad_fn is not None)",
    "call": "%%gradscope\nprint('first')\nloss = (w * w).sum()\nloss.backward()\nloss.item()",
    "left": "print(w.grad, Out[max(Out)])",
    "several elements": "%%gradscope\n\n    # All is indented.\n    doubled = w * 2",
    "large cell": "%%gradscope\n"
    + "".join(f"a{n} = torch.tanh(a{n - 1} * {n})\n" for n in range(1, 40)),
    "little of it": "%%gradscope --top 2\n(w * 2).sum()",
    "with a gradient": '%%gradscope backward --gradient "[1, 0, 0]" --format table\nw * 2',
    "doctor": "%%gradscope doctor\n"
    "for _ in range(3):\n    loss = (w * w).detach().sum() + w.sum()\n    loss.backward()\n"
    "print('end')",
    "quiet rule": "%%gradscope doctor --ignore GS303\n"
    "((w * w).detach().sum() + w.sum()).backward()",
    "quiet line": "%%gradscope doctor\n"
    "((w * w).detach().sum() + w.sum()).backward()  # gradscope: ignore GS303",
    "explain": "%%gradscope explain --leaf w\n(w * 2).sum()",
    "memory": "%%gradscope memory\n(w * w).sum()",
    "check": "%%gradscope check\n(w * w).sum()",
    "depends": "%%gradscope depends --on w\n(w * w).cumsum(0)",
    "raises": "%%gradscope\n\nkept = torch.tanh(w).sum()\nw.reshape(2)",
    "no syntax": "%%gradscope\nw = = 3",
    "interrupted": "%%gradscope\nkept = (w * 2).sum()\nraise KeyboardInterrupt",
    "leaves": "%%gradscope\nkept = (w * 2).sum()\nraise SystemExit('enough')",
    "no graph": "%%gradscope\nprint('x')\ntorch.ones(2)",
    "timed": "%%gradscope\n%%capture\n(w * 2).sum().backward()",
    "blank": "%%gradscope\n \n",
    "misspelt option": "%%gradscope --gradien 1\nw",
    "misspelt command": "%%gradscope backwrd\nw",
    "option of another": "%%gradscope backward --fail-on error\nw",
    "a file": "%%gradscope backward train.py\nw",
    "a module": "%%gradscope -m train\nw",
    "arguments": "%%gradscope doctor -- --lr 1\nw",
    "another command": "%%gradscope show\nw",
    "open quotes": "%%gradscope --root 'a\nw",
    "limited": "%%gradscope doctor --steps 3\nw",
    "awaits": "%%gradscope\nimport asyncio\nawait asyncio.sleep(0)",
    "unknown rule": "%%gradscope doctor --ignore GS999\nw",
    "picture as text": "%%gradscope --format png\n(w * 2).sum()",
    "recorded": "with gradscope.record():\n"
    "    get_ipython().run_cell_magic('gradscope', '', 'inner = (w * 2).sum()')\n"
    "inner.item()",
    "help": "%%gradscope doctor --help\nnever",
    "again": "%load_ext gradscope\n%reload_ext gradscope",
    "still there": "%%gradscope\nloss = w.sum()",
    "as before": "import sys\n"
    "print(sys.modules['__main__'].loss is loss, 'cache' in vars(get_ipython().compile))",
}


@pytest.fixture(scope="module")
def outputs() -> dict[str, list[Any]]:
    """The outputs of each cell."""
    cells = [nbformat.v4.new_code_cell(text) for text in CELLS.values()]  # type: ignore[no-untyped-call]
    notebook = nbformat.v4.new_notebook(cells=cells)  # type: ignore[no-untyped-call]
    NotebookClient(notebook, timeout=300, allow_errors=True).execute()
    return {name: _joined(cell.outputs) for name, cell in zip(CELLS, notebook.cells, strict=True)}


def _joined(outputs: list[Any]) -> list[Any]:
    """A busy kernel sends what is printed in several pieces."""
    found: list[Any] = []
    for one in outputs:
        if found and one.get("name") and one.get("name") == found[-1].get("name"):
            found[-1].text += one.text
        else:
            found.append(one)
    return found


def test_a_small_graph_is_a_picture(outputs: dict[str, list[Any]]) -> None:
    (shown,) = outputs["report"]
    assert set(shown.data) == {"text/plain", "image/svg+xml"}
    assert len(shown.data["text/plain"]) <= 200
    assert ElementTree.fromstring(shown.data["image/svg+xml"]).tag.endswith("svg")


@pytest.mark.parametrize(
    ("cell", "told"),
    [
        ("several elements", "<Report doubled: 2 nodes, 1 leaf; .show()>"),
        # Another magic may follow.
        ("timed", "<Report 3 nodes, 1 leaf, ‖g‖ 3.464"),
        ("still there", "<Report loss: 2 nodes"),
    ],
)
def test_a_report_says_what_it_is_of(cell: str, told: str, outputs: dict[str, list[Any]]) -> None:
    assert outputs[cell][0].data["text/plain"].startswith(told)


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


def test_errors_are_those_of_python(outputs: dict[str, list[Any]]) -> None:
    (shown,) = outputs["wrong height"]
    assert shown.ename == "TypeError"
    assert shown.evalue == "page() takes a height in pixels, not 0"


# ---------------------------------------------------------------- %%gradscope


def printed(outputs: list[Any], stream: str = "stdout") -> str:
    """What a cell wrote to a stream, without colours."""
    return plain("".join(one.text for one in outputs if one.get("name") == stream))


def plain(text: str) -> str:
    return re.sub("\x1b\\[[0-9;]*m", "", text)


def kinds(outputs: list[Any]) -> list[str]:
    return [one.output_type for one in outputs]


def number_of(cell: str) -> int:
    """As the cell counts: all of them run."""
    return list(CELLS).index(cell) + 1


def test_a_cell_runs_in_the_users_own_shell(outputs: dict[str, list[Any]]) -> None:
    assert kinds(outputs["call"]) == ["stream", "execute_result", "display_data"]
    said, result, shown = outputs["call"]
    assert said.text == "first\n" and result.data["text/plain"] == "14.0"
    assert result.execution_count == number_of("call")
    assert set(shown.data) == {"text/plain", "image/svg+xml"}
    assert shown.data["text/plain"].startswith("<Report loss: 3 nodes, 1 leaf, ‖g‖ 7.483")
    assert printed(outputs["left"]) == "tensor([2., 4., 6.]) 14.0\n"
    assert printed(outputs["as before"]) == "True False\n"


def test_the_picture_has_the_lines_of_the_cell(outputs: dict[str, list[Any]]) -> None:
    picture = outputs["call"][-1].data["image/svg+xml"]
    assert f"In[{number_of('call')}]:3" in picture


def test_a_graph_is_drawn_as_a_report_is(outputs: dict[str, list[Any]]) -> None:
    (shown,) = outputs["large cell"]
    assert "image/svg+xml" in shown.data or "text/html" in shown.data


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ("little of it", "the 2 largest gradients"),
        ("with a gradient", "‖g‖"),
        ("doctor", "1 information · 3 backward calls watched"),
        ("doctor", "In[{}]:3 · (w * w).detach()"),
        ("quiet rule", "no findings · 1 backward call watched"),
        ("quiet line", "no findings · 1 backward call watched · 1 finding ignored by a comment"),
        ("explain", "Step by step: upstream × local derivative"),
        ("memory", "of activations kept for backward"),
        ("check", "2 calls: 2 right · whole program: 1 right"),
        ("depends", "to no later w[j], only to w[i] and earlier ones"),
        ("help", "Usage: %%gradscope doctor [OPTIONS]"),
    ],
)
def test_answers_are_texts_in_colours(cell: str, words: str, outputs: dict[str, list[Any]]) -> None:
    text = printed(outputs[cell])
    assert words.format(number_of(cell)) in text
    assert max(map(len, text.splitlines())) <= 100
    assert cell == "help" or "\x1b[" in "".join(one.get("text", "") for one in outputs[cell])


@pytest.mark.parametrize(
    ("cell", "stream", "begins"),
    [
        ("unchanged", "stdout", "None True\n"),
        ("doctor", "stdout", "end\n"),  # the program is never stopped
        ("no graph", "stdout", "x\n"),
        # A notebook is given no bytes.
        ("picture as text", "stderr", "UsageError: png cannot be shown as text"),
        ("recorded", "stderr", "gradscope: this cell is being recorded already"),
    ],
)
def test_a_cell_prints(cell: str, stream: str, begins: str, outputs: dict[str, list[Any]]) -> None:
    assert printed(outputs[cell], stream).startswith(begins)


@pytest.mark.parametrize(
    ("cell", "error"),
    [("raises", "RuntimeError"), ("interrupted", "KeyboardInterrupt"), ("leaves", "SystemExit")],
)
def test_a_cell_that_raises_shows_its_traceback_and_then_its_graph(
    cell: str, error: str, outputs: dict[str, list[Any]]
) -> None:
    told, *between, shown = outputs[cell]
    assert (told.output_type, told.ename) == ("error", error)
    assert all(one.get("name") == "stderr" and not own_words(one.text) for one in between)
    assert shown.data["text/plain"].startswith("<Report ")
    traceback = plain("\n".join(told.traceback))
    assert "gradscope/" not in traceback
    if cell == "raises":
        assert f"Cell In[{number_of(cell)}], line 4" in traceback


def test_what_is_no_python_is_told_by_ipython(outputs: dict[str, list[Any]]) -> None:
    (shown,) = outputs["no syntax"]
    assert shown.ename == "SyntaxError"
    assert f"Cell In[{number_of('no syntax')}], line 2" in plain("\n".join(shown.traceback))


def test_a_cell_without_a_graph_says_why(outputs: dict[str, list[Any]]) -> None:
    assert "does not require grad" in printed(outputs["no graph"], "stderr")
    assert "execute_result" in kinds(outputs["no graph"])


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("blank", "the cell is empty\n"),
        ("misspelt option", "No such option '--gradien'."),
        ("misspelt command", "No such command 'backwrd'. Did you mean 'backward'?"),
        (
            "option of another",
            "No such option '--fail-on'.\n--fail-on is an option of %%gradscope doctor\n",
        ),
        ("a file", "TARGET, -m, -c, --let, --seed and arguments are of another program"),
        ("a module", "TARGET, -m, -c, --let, --seed and arguments are of another program"),
        ("arguments", "TARGET, -m, -c, --let, --seed and arguments are of another program"),
        (
            "another command",
            "%%gradscope show: this command cannot run a cell\nuse trace, backward",
        ),
        ("open quotes", "%%gradscope --root 'a: No closing quotation\n"),
        ("limited", "--steps: a cell is watched to its end\nleave out --steps\n"),
        ("awaits", "a cell that awaits cannot run below a magic while an event loop runs"),
        ("unknown rule", "unknown rule GS999\n"),
    ],
)
def test_a_line_that_asks_for_nothing_runs_nothing(
    cell: str, said: str, outputs: dict[str, list[Any]]
) -> None:
    (shown,) = outputs[cell]
    assert shown.name == "stderr" and shown.text.startswith(f"UsageError: {said}")


def test_a_cell_that_is_recorded_already_runs_as_it_stands(outputs: dict[str, list[Any]]) -> None:
    assert outputs["recorded"][-1].data["text/plain"] == "12.0"


def test_hints_in_a_notebook_speak_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADSCOPE_DOT", "/no/such/dot")
    shown = gradscope.Report.of(transformer(40))._repr_mimebundle_()["text/html"]
    assert "all=True" in shown and "--" not in re.sub("<[^>]*>", "", shown)


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
