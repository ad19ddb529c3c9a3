"""Places and names in code that is in no file: what was typed at a prompt, or run by ``exec``."""

from __future__ import annotations

import doctest
import linecache
from pathlib import Path
from typing import Any

import pytest
import torch

import gradscope
from gradscope.model.report import Report
from tests import forkserver
from tests.fuzz.process import ran
from tests.looking import leaf_named

TYPED = "y = w * 2\nloss = (y + 1).sum()\n"


def graph_of(text: str, filename: str) -> Report:
    """The graph of ``loss`` that code of this name made, seen from where its variables are."""
    namespace: dict[str, Any] = {"w": torch.ones(3, requires_grad=True)}
    with gradscope.record() as run:
        exec(compile(text, filename, "exec", dont_inherit=True), namespace)
    namespace["look"] = run.trace
    exec("report = look(loss)", namespace)
    report = namespace["report"]
    assert isinstance(report, Report)
    return report


def places(report: Report) -> list[tuple[str, int, str]]:
    """Where the nodes were made, the last one first."""
    origins = map(report.graph.origin_of, report.graph.nodes)
    return [(one.file, one.line, one.expression) for one in origins if one is not None]


def keep(monkeypatch: pytest.MonkeyPatch, filename: str, text: str) -> None:
    lines = text.splitlines(keepends=True)
    monkeypatch.setitem(linecache.cache, filename, (len(text), None, lines, filename))


@pytest.mark.parametrize("filename", ["<python-input-3>", "<doctest train[2]>", "made"])
def test_a_text_that_python_keeps_gives_expressions(
    filename: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(monkeypatch, filename, TYPED)
    assert places(graph_of(TYPED, filename)) == [
        (filename, 2, "(y + 1).sum()"),
        (filename, 2, "y + 1"),
        (filename, 1, "w * 2"),
    ]


@pytest.mark.parametrize("filename", ["<stdin>", "<string>", "<string> of -c", "<timed exec>"])
def test_a_text_that_nobody_keeps_leaves_lines_and_names(
    filename: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    filename, _, kept = filename.partition(" of ")
    if kept:  # from 3.13 on python keeps what follows -c under the name that exec gives to all
        keep(monkeypatch, filename, "import torch, gradscope\nexec(open('other').read())\n")
    report = graph_of(TYPED, filename)
    assert places(report) == [(filename, 2, ""), (filename, 2, ""), (filename, 1, "")]
    assert report.graph.roots[0].label == "loss"
    assert leaf_named(report, "w")


def test_a_doctest(capsys: pytest.CaptureFixture[str]) -> None:
    """Its own way of keeping texts works only while it runs."""
    text = """
    >>> w = torch.ones(3, requires_grad=True)
    >>> with gradscope.record() as run:
    ...     loss = (w * 2).sum()
    >>> [one.expression for one in run.trace(loss).graph.origins][:2]
    ['(w * 2).sum()', 'w * 2']
    """
    doctest.run_docstring_examples(text, {"torch": torch, "gradscope": gradscope})
    assert capsys.readouterr().out == ""


KERNEL = """
import torch, gradscope
from IPython.core.interactiveshell import InteractiveShell
from ipykernel.compiler import XCachingCompiler
InteractiveShell.compiler_class = XCachingCompiler
shell = InteractiveShell.instance(ipython_dir="ipython")
for cell in [
    "w = torch.ones(3, requires_grad=True)",
    "def double(t):\\n    return t * 2",
    "with gradscope.record() as run:\\n    loss = double(w).sum()",
    "loss",
    "kept = run.trace(loss)\\ndel loss\\nagain = run.trace(Out[4])",
]:
    shell.push({"torch": torch, "gradscope": gradscope}, interactive=False)
    shell.run_cell(cell, store_history=True)
for report in (shell.user_ns["kept"], shell.user_ns["again"]):
    print(report.graph.roots[0].label, report.graph.leaves[0].names[0])
    print([(one.file, one.line, one.expression) for one in report.graph.origins])
"""


def test_cells_of_a_kernel_go_by_their_numbers(tmp_path: Path) -> None:
    """A kernel calls them ``/tmp/ipykernel_7/1234.py``."""
    done = ran([forkserver.python(), "-c", KERNEL], tmp_path)
    assert done.stderr == ""
    origins = "[('In[3]', 2, 'double(w).sum()'), ('In[2]', 2, 't * 2')"
    named, where, again, _ = done.stdout.splitlines()[1:]
    assert (named, again) == ("loss w", "Out[4] w")
    assert where.startswith(origins)
