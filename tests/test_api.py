"""The Python interface at a breakpoint: names, numbers, and a program that goes on undisturbed."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import get_type_hints

import pytest
import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils.checkpoint import checkpoint

import gradscope
from gradscope.cli.commands import gradscope as commands
from gradscope.errors import ReportError, RootError
from gradscope.formats import FORMATS
from gradscope.options import options_on
from gradscope.render.options import ToDraw
from tests.looking import Session, expressions, is_close, new_gradient, variables
from tests.reports import small, transformer


def train(look: Callable[[torch.Tensor], None], steps: int = 3) -> list[float]:
    """A training of a user, who stops to look at every loss."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 2))
    optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
    losses = []
    for _ in range(steps):
        loss = nn.functional.cross_entropy(net(torch.randn(6, 4)), torch.tensor([0, 1, 0, 1, 0, 1]))
        optimizer.zero_grad()
        look(loss)
        loss.backward()  # type: ignore[no-untyped-call]
        look_again = torch.rand(())
        optimizer.step()
        losses += [loss.item(), look_again.item()]
    return [*losses, *(p.double().sum().item() for p in net.parameters())]


def test_training_goes_on_to_the_same_numbers() -> None:
    expected = train(lambda _: None)
    reports: list[gradscope.Report] = []
    assert train(lambda loss: reports.append(gradscope.backward(loss))) == expected
    assert train(lambda loss: reports.append(gradscope.trace(loss))) == expected
    assert len(reports) == 6
    with gradscope.record() as run:
        assert train(lambda loss: reports.append(run.backward(loss))) == expected
    assert "nn.functional.cross_entropy" in expressions(reports[-1])[0]


def test_the_callers_variables_give_the_names() -> None:
    weight = torch.ones(2, requires_grad=True)
    holder = {"b": torch.ones(2, requires_grad=True)}
    loss = (weight * holder["b"]).sum()
    report = gradscope.backward(loss)
    assert {leaf.names[0] for leaf in report.graph.leaves} == {"weight", "holder['b']"}
    assert report.graph.roots[0].label == "loss"
    assert is_close(new_gradient(report, "weight"), [1, 1])
    assert weight.grad is None


def test_a_look_takes_nothing_from_the_backward_that_follows() -> None:
    x = torch.ones(3, requires_grad=True)
    y = x * x
    y.retain_grad()
    seen: list[torch.Tensor] = []
    x.register_post_accumulate_grad_hook(lambda t: seen.append(t))  # type: ignore[no-untyped-call]
    gradscope.backward(y.sum())
    assert (x.grad, y.grad, seen) == (None, None, [])
    y.sum().backward()  # type: ignore[no-untyped-call]
    assert len(seen) == 1
    assert y.grad is not None


@pytest.mark.parametrize("reentrant", [True, False])
def test_a_look_through_a_checkpoint_leaves_grad_and_random_state(reentrant: bool) -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5))
    x = torch.ones(2, 3, requires_grad=True)
    kept = net[0].bias.grad = torch.full((3,), 7.0)
    fired: list[int] = []
    for parameter in net.parameters():
        parameter.register_post_accumulate_grad_hook(lambda _: fired.append(1))  # type: ignore[no-untyped-call]
    out = checkpoint(net, x, use_reentrant=reentrant, preserve_rng_state=False)
    assert isinstance(out, torch.Tensor)
    state = torch.get_rng_state()
    report = gradscope.backward(out.sum())
    assert torch.equal(torch.get_rng_state(), state)
    assert net[0].bias.grad is kept
    assert torch.equal(kept, torch.full((3,), 7.0))
    assert net[0].weight.grad is None
    assert x.grad is None
    assert fired == []
    assert new_gradient(report, "x").state == "finite"


def test_record_labels_what_the_block_made() -> None:
    a = torch.ones(2, requires_grad=True)
    with gradscope.record() as run:
        y = a * 3
        z = y.sum()
    report = run.backward(z)
    assert expressions(report) == ["y.sum()", "a * 3"]
    assert variables(report)["y"].id == 1
    assert variables(report)["z"].id == 0
    assert expressions(gradscope.trace(z)) == []
    # A look inside of a block uses what it recorded.
    with gradscope.record():
        z = (a * 3).sum()
        report = gradscope.backward(z)
        z.backward()  # type: ignore[no-untyped-call]
    assert expressions(report) == ["(a * 3).sum()", "a * 3"]
    assert a.grad is not None


def test_gradients_can_be_tensors_lists_numbers_or_text() -> None:
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    weights = [1, 2, 3]
    for gradient in (torch.tensor(weights), weights, "[1, 2, 3]", "weights"):
        assert is_close(new_gradient(gradscope.backward(y, gradient), "x"), [2, 4, 6])
    with pytest.raises(RootError, match=r"shape \[3\]"):
        gradscope.backward(y)
    with pytest.raises(RootError, match=r"shape \[2\]"):
        gradscope.backward(y, [1, 2])


class Counting(TorchFunctionMode):
    """A mode of the user that counts calls."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def __torch_function__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        """Count and pass on."""
        self.calls += 1
        return func(*args, **(kwargs or {}))


def test_a_mode_of_the_user_does_not_see_us_and_stays_in_place() -> None:
    x = torch.ones(2, requires_grad=True)
    with Counting() as mode:
        with gradscope.record() as run:
            y = (x * 2).sum()
            inner = Counting()
            inner.__enter__()  # type: ignore[no-untyped-call]
        assert torch.overrides._get_current_function_mode_stack() == [mode, inner]  # type: ignore[no-untyped-call]
        calls = mode.calls, inner.calls
        report = run.backward(y)
        gradscope.backward(y)
        assert (mode.calls, inner.calls) == calls
        inner.__exit__(None, None, None)  # type: ignore[no-untyped-call]
    assert mode.calls == 2
    assert expressions(report) == ["(x * 2).sum()", "x * 2"]


def test_the_default_device_and_no_grad_do_not_matter() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    torch.set_default_device("meta")
    try:
        with torch.no_grad():
            report = gradscope.backward(y, "[1, 2]")
            drawn = gradscope.backward(y, "randn")
    finally:
        torch.set_default_device(None)
    assert is_close(new_gradient(report, "x"), [2, 4])
    assert new_gradient(drawn, "x").state == "finite"


SHOWN: dict[str, tuple[ToDraw, list[str]]] = {
    "depth": ({"depth": 1}, ["--depth", "1"]),
    "all": ({"all": True}, ["--all"]),
    "path": ({"path": "gpt.wte.weight"}, ["--path", "gpt.wte.weight"]),
    "focus": ({"focus": "*.h.3"}, ["--focus", "*.h.3"]),
    "top": ({"top": -4}, ["--top", "-4"]),
    "width": ({"width": 50}, ["--width", "50"]),
    "values": ({"values": True, "saved": True}, ["--values", "--saved"]),
    "call": ({"call": 0}, ["--call", "0"]),
    "none": ({"depth": None, "width": None}, []),
}


@pytest.mark.parametrize("case", SHOWN)
def test_show_prints_what_the_command_line_does(
    case: str, session: Session, capfd: pytest.CaptureFixture[str]
) -> None:
    keywords, options = SHOWN[case]
    report = gradscope.Report.of(transformer(layers=6))
    report.save(session.folder / "report.json")
    expected = session.cli("show", "report.json", *options).out
    capfd.readouterr()
    report.show(**keywords)
    # But for the ways to see more, which are told in the words of the place.
    for option, keyword in (("--depth N", "depth=N"), ("--all", "all=True")):
        expected = expected.replace(option, keyword)
    assert capfd.readouterr().out == expected


@pytest.mark.parametrize(
    ("answer", "way"),
    [
        ("explain", "gradscope.explain(root)"),
        ("memory", "gradscope.memory(root)"),
        ("checks", "gradscope.check(root)"),
        ("depends", "gradscope.depends(root, on)"),
        ("split", "by='term'"),
    ],
)
def test_an_answer_that_a_report_does_not_hold_is_refused(
    answer: str, way: str, tmp_path: Path
) -> None:
    with pytest.raises(ReportError) as refused:
        gradscope.Report.of(small()).save(tmp_path / "answer.txt", format=answer)
    assert refused.value.what == "the report does not hold that answer"
    assert refused.value.hint == f"make one with {way}"
    assert not list(tmp_path.iterdir())


def test_save_takes_the_keywords_of_show(tmp_path: Path) -> None:
    report = gradscope.Report.of(transformer(layers=2))
    report.save(tmp_path / "a.csv", sort="name", top=3, path="gpt.wte.weight")
    assert "gpt.wte.weight" in (tmp_path / "a.csv").read_text("utf-8").splitlines()[1]
    report.save(tmp_path / "a.dot", depth=2)
    report.save(tmp_path / "b.dot", depth=1)
    assert (tmp_path / "a.dot").read_bytes() != (tmp_path / "b.dot").read_bytes()


def test_a_wrong_keyword_is_named_with_the_right_ones(tmp_path: Path) -> None:
    report = gradscope.Report.of(small())
    with pytest.raises(TypeError, match=r"^show\(\) has no option widht; it .*\bwidth, ") as shown:
        report.show(widht=80)  # type: ignore[call-arg]
    assert "direction" not in str(shown.value)
    with pytest.raises(TypeError, match=r"^save\(\) has no option widht; it .*, unicode$"):
        report.save(tmp_path / "a.svg", widht=80)  # type: ignore[call-arg]
    assert not list(tmp_path.iterdir())


def test_every_drawing_option_of_the_command_line_is_a_documented_keyword() -> None:
    show = commands.commands["show"]
    options = {option.opts[-1].removeprefix("--") for option in show.params}
    of_files = {"file", "output", "open", "format", "quiet", "max-size"}
    keywords = {name.replace("-", "_") for name in options - of_files}
    assert keywords <= set(ToDraw.__annotations__)
    kinds = get_type_hints(ToDraw)
    for one in options_on("show"):
        name = "call" if one.name == "held" else one.name
        if name in kinds and name != "color":  # which is a word there, and a flag here
            assert one.kind == kinds[name], name
    told = f"{gradscope.Report.show.__doc__}{gradscope.Report.save.__doc__}"
    for name in ToDraw.__annotations__:
        assert re.search(rf"^ +{name}: ", told, re.MULTILINE), name
    for entry in FORMATS.values():
        assert all(suffix in told for suffix in entry.suffixes[:1])


def test_a_report_is_printed_as_it_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    report = gradscope.explain((x * x).sum())
    report.show()
    assert str(report).rstrip() == capsys.readouterr().out.rstrip()
    assert repr(report).startswith("<Report ")


def test_operations_outside_of_a_block_are_counted() -> None:
    w = torch.ones(3, requires_grad=True)
    before = (w * 2).sin()
    with gradscope.record() as run:
        total = (before * 3).sum()
    (note,) = run.backward(total).notes
    assert note.startswith("the lines of 2 of 4 operations are not known: see gradscope.record()")
    with gradscope.record() as whole:
        total = (w * 2).sum()
    assert not whole.backward(total).notes
