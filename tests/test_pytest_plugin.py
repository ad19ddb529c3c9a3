"""The plugin for pytest, in a pytest of its own: what passes, what fails, and with which words."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import forkserver
from tests.conftest import ROOT
from tests.fuzz.process import ran

TESTS = """
import pytest, torch
from torch import nn

class Net(nn.Module):
    def __init__(self, cut=False):
        super().__init__()
        self.a, self.b, self.cut = nn.Linear(3, 4), nn.Linear(4, 2), cut
    def forward(self, x):
        h = self.a(x).tanh()
        return self.b(h.detach() if self.cut else h)

def loss(cut=False):
    torch.manual_seed(0)
    return Net(cut)(torch.ones(5, 3)).pow(2).mean()

def spoiled():
    w = torch.zeros(3, requires_grad=True)
    w.sqrt().mul(0).sum().backward()
    return w

def test_healthy(gradscope):
    gradscope.assert_healthy(loss())
def test_cut(gradscope):
    gradscope.assert_healthy(loss(True))
def test_cut_is_ignored(gradscope):
    gradscope.assert_healthy(loss(True), ignore=["GS303"])
def test_unknown_rule(gradscope):
    gradscope.assert_healthy(loss(), ignore=["GS999"])
def test_no_graph(gradscope):
    gradscope.assert_healthy(torch.ones(3).sum())
def test_reaches(gradscope):
    net = Net()
    gradscope.assert_reaches(net(torch.ones(5, 3)), net)
    assert net.a.weight.grad is None
def test_does_not_reach(gradscope):
    net = Net(True)
    gradscope.assert_reaches(net(torch.ones(5, 3)).mean(), net)
def test_need_not_reach(gradscope):
    net = Net(True)
    gradscope.assert_reaches(net(torch.ones(5, 3)).mean(), net, except_=["a.*"])
def test_one_text(gradscope):
    net = Net(True)
    gradscope.assert_reaches(net(torch.ones(5, 3)).mean(), net, except_="a.*")
def test_unknown_parameter(gradscope):
    net = Net()
    gradscope.assert_reaches(net(torch.ones(5, 3)).mean(), net, except_=["a.weigth"])
def test_same(gradscope):
    gradscope.assert_same(loss(), "saved.json")
def test_not_the_same(gradscope):
    gradscope.assert_same(loss() * 2, "saved.json")
def test_missing(gradscope):
    gradscope.assert_same(loss(), "missing.json")
def test_broken(gradscope):
    gradscope.assert_same(loss(), "broken.json")
def test_spoiled():
    spoiled()
def test_spoiled_by_its_name_ignored():
    spoiled()
@pytest.mark.gradscope(ignore=["GS102"])
def test_spoiled_is_ignored():
    spoiled()
def test_spoiled_by_its_comment_ignored():
    w = torch.zeros(3, requires_grad=True)
    w.sqrt().mul(0).sum().backward()  # gradscope: ignore GS102
def test_healthy_by_its_comment(gradscope):
    w = torch.zeros(3, requires_grad=True)
    gradscope.assert_healthy(w.sqrt().mul(0).sum())  # gradscope: ignore GS102
@pytest.mark.gradscope("GS102")
def test_mark_by_place():
    spoiled()
@pytest.mark.gradscope(ignore="GS102")
def test_mark_of_text():
    spoiled()
@pytest.mark.gradscope(ignore=["GS999"])
def test_mark_of_no_rule():
    spoiled()
@pytest.mark.xfail(strict=True, reason="it passes")
def test_passes_against_its_mark():
    spoiled()
@pytest.mark.xfail(False, reason="holds nowhere")
def test_mark_does_not_hold():
    spoiled()
def test_expected_errors():
    once = loss()
    once.backward()
    with pytest.raises(RuntimeError, match="second time"):
        once.backward()
    x = torch.ones(3, requires_grad=True)
    y = x.exp()
    y.add_(1)
    with pytest.raises(RuntimeError, match="inplace"):
        y.sum().backward()
    with pytest.raises(RuntimeError, match="scalar outputs"):
        x.exp().backward()
    with torch.autograd.detect_anomaly(check_nan=True), pytest.raises(RuntimeError, match="nan"):
        spoiled()
def test_only_expected_errors():
    x = torch.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="not have been used"):
        torch.autograd.grad((x * 2).sum(), [torch.ones(3, requires_grad=True)])
def test_expected_error_hides_nothing():
    test_expected_errors()
    spoiled()
def test_error_that_nobody_expects():
    once = loss()
    once.backward()
    once.backward()
def test_gradcheck():
    x = torch.rand(3, dtype=torch.double, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: x.sin() * 2, x)
    assert torch.autograd.gradcheck(lambda x: x.sin() * 2, x, fast_mode=True)
    assert torch.autograd.gradgradcheck(lambda x: x.sin() * 2, x)
def test_fails_by_itself():
    assert spoiled().grad.isfinite().all(), "mine"
def test_in_a_step_of_its_own(gradscope):
    assert loss().backward() is None
def test_random_state():
    torch.manual_seed(3)
    w = torch.ones(3, requires_grad=True)
    (w * torch.rand(3)).sum().backward()
    torch.manual_seed(3)
    assert torch.equal(w.grad, torch.rand(3))
def test_without_torch():
    assert True
"""

FAILED = {
    "test_cut": "GS303 history-cut · warning",
    "test_unknown_rule": "unknown rule GS999; rules go by codes",
    "test_no_graph": "carries no gradient history",
    "test_does_not_reach": "backward from the loss does not reach 2 parameters of Net: "
    "a.weight, a.bias",
    "test_one_text": "TypeError: except_ takes several names: except_=['a.*']",
    "test_passes_against_its_mark": "[XPASS(strict)] it passes",
    "test_error_that_nobody_expects": "backward through the graph a second time",
    "test_unknown_parameter": "except_ names no parameter that requires grad: 'a.weigth'; did you "
    "mean 'a.weight'?",
    "test_not_the_same": "A is saved.json, B this test",
    "test_missing": "write it: pytest --gradscope-update",
    "test_broken": "broken.json",
    "test_fails_by_itself": "AssertionError: mine",
}
"""The tests that fail without an option, and words of their failure."""

SPOILED = {
    "test_spoiled": "GS102 nonfinite-backward · error",
    "test_spoiled_by_its_name_ignored": "GS102 nonfinite-backward · error",
    "test_mark_does_not_hold": "GS102 nonfinite-backward · error",
    "test_expected_error_hides_nothing": "GS102 nonfinite-backward · error",
    "test_mark_by_place": "the mark gradscope of this test: it takes ignore=[...] and nothing else",
    "test_mark_of_text": "of this test: ignore takes several rules: ignore=['GS102']",
    "test_mark_of_no_rule": "the mark gradscope of this test: unknown rule GS999",
}
"""Those that --gradscope lets fail as well."""

Run = Callable[..., str]


def printed_by(
    command: list[str], *arguments: str, folder: Path | None = None, before: str = ""
) -> str:
    """All that a pytest with the plugin prints, also where gradscope is not installed but only
    importable."""
    words = [*command, "-p", "gradscope.testing.plugin", *arguments]
    path = f"{before}{ROOT}"
    done = ran(words, folder, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1", PYTHONPATH=path)
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("plugin")
    (folder / "test_net.py").write_text(TESTS)
    (folder / "broken.json").write_text("{")

    def run(*arguments: str) -> str:
        return printed_by(forkserver.module("pytest"), *arguments, folder=folder)

    run("-k", "test_same", "--gradscope-update")
    return run


def failures(printed: str) -> dict[str, str]:
    """What pytest shows of each test that failed."""
    parts = re.split(r"^_{3,} (\w+) _{3,}$", printed, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_assertions(run: Run) -> None:
    failed = failures(run("--tb=short"))
    assert failed.keys() == FAILED.keys()
    for name, words in FAILED.items():
        assert words in failed[name], name
    # Cuts are told where they are known.
    assert "GS303" in failed["test_does_not_reach"]


def test_every_test_is_examined(run: Run) -> None:
    printed = run("--tb=short", "--gradscope", "-rs")
    failed = failures(printed.partition("= gradscope =")[0])
    assert failed.keys() == FAILED.keys() | SPOILED.keys()
    for name, words in (FAILED | SPOILED).items():
        assert words in failed[name], name
    # The test's own failure stays as it is; ours stands below it.
    own = failed["test_fails_by_itself"]
    assert own.index("AssertionError: mine") < own.index("GS102 nonfinite-backward")
    summary = printed.partition("= gradscope =")[2]
    assert "22 backward calls in 12 tests examined, 7 findings" in summary
    assert summary.count("GS102 Backward of `w.sqrt()` turns a finite gradient") == 6


def test_rules_are_left_out(run: Run) -> None:
    printed = run(
        *("--gradscope", "--gradscope-ignore", "nonfinite-backward"),
        *("-o", "gradscope_ignore=GS303", "-k", "spoiled or test_cut"),
    )
    assert "6 passed" in printed and "0 findings" in printed
    printed = run("--gradscope", "--gradscope-ignore", "GS999")
    assert "ERROR: gradscope: unknown rule GS999" in printed


def in_its_own_process(folder: Path, *arguments: str, before: str = "") -> str:
    """What pytest prints where nothing is imported yet."""
    return printed_by([sys.executable, "-m", "pytest"], *arguments, str(folder), before=before)


def test_torch_that_comes_late_is_told(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("")  # in the place of the large one
    (tmp_path / "test_late.py").write_text("def test_late():\n    import torch\n")
    printed = in_its_own_process(tmp_path, "--gradscope", before=f"{tmp_path}{os.pathsep}")
    assert "1 test not examined: torch was not imported when it began" in printed


def test_the_plugin_costs_no_start(tmp_path: Path) -> None:
    (tmp_path / "test_nothing.py").write_text("def test_nothing(): pass\n")
    (tmp_path / "conftest.py").write_text(
        "import sys\n"
        "def pytest_sessionfinish():\n"
        "    loaded = {name.partition('.')[0] for name in sys.modules}\n"
        "    print('loaded', loaded & {'torch', 'rich', 'graphviz', 'msgspec', 'click'})\n"
    )
    assert "loaded set()" in in_its_own_process(tmp_path)


def test_the_fixture_without_torch(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('No module named torch')\n")
    (tmp_path / "test_it.py").write_text("def test_it(gradscope): pass\n")
    printed = in_its_own_process(tmp_path, before=f"{tmp_path}{os.pathsep}")
    assert "the fixture gradscope needs torch: pip install torch" in printed
    assert "Traceback" not in printed
