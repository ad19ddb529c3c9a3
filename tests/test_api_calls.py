"""What the commands answer, asked from python; and the words in which it answers."""

from __future__ import annotations

import ast
import inspect
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import gradscope
from gradscope import api
from gradscope.api.keywords import drawing
from gradscope.errors import CaptureError, OutputError, RootError
from gradscope.model.invariants import check as check_invariants
from gradscope.render.options import ToCompare, ToDraw
from tests import api_user, reference
from tests.api_user import make
from tests.looking import Session
from tests.reports import transformer

PACKAGE = Path(gradscope.__file__).parent


PROGRAM = """
    import torch
    from torch import nn
    import gradscope

    def make():
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
        return net(torch.randn(6, 4)).pow(2).mean()

    with gradscope.record(check=True):
        loss = make()
        {looks}
"""
COMMANDS = ("trace", "backward", "explain", "memory", "check")


def test_a_call_answers_as_the_command_does(session: Session) -> None:
    """By the fields of the report that both leave, but for where it comes from."""
    looks = "; ".join(f"gradscope.{name}(loss).save('own-{name}.json')" for name in COMMANDS)
    path = session.write(PROGRAM.format(looks="pass"))
    session.write(PROGRAM.format(looks=looks), "asks.py")
    assert not session.cli("trace", "asks.py").status
    for name in COMMANDS:
        options = ["--root", "loss"] if name in ("backward", "explain") else []
        wanted = session.look_at(str(path), *options, command=name)
        found = gradscope.load(session.folder / f"own-{name}.json")
        check_invariants(found)
        assert found.graph.edges == wanted.graph.edges, name
        assert [one.op for one in found.graph.nodes] == [one.op for one in wanted.graph.nodes]
        assert found.explanation == wanted.explanation, name
        assert found.memory == wanted.memory, name
        assert (found.checks is None) == (wanted.checks is None) == (name != "check")
        if found.checks is not None and wanted.checks is not None:
            pairs = [(one.verdict, one.nodes) for one in found.checks.calls]
            assert pairs == [(one.verdict, one.nodes) for one in wanted.checks.calls]


def test_an_explanation_is_of_the_leaf_that_was_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    net, loss = make()
    report = gradscope.explain(loss, "0.bias")
    report.show(width=80)
    shown = capsys.readouterr().out
    assert "0.bias" in shown and "upstream" in shown
    report.show("tree")
    assert capsys.readouterr().out != shown
    with pytest.raises(TypeError, match="a leaf or a node, not both"):
        gradscope.explain(loss, "0.bias", node=1)
    assert net[0].bias.grad is None  # type: ignore[index]


def test_what_a_check_needs_is_recorded() -> None:
    _, loss = make()
    with pytest.raises(CaptureError, match=r"gradscope\.record\(check=True\)"):
        gradscope.check(loss)

    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, *grads: torch.Tensor) -> torch.Tensor:
            (x,) = ctx.saved_tensors
            return grads[0] * x  # type: ignore[no-any-return]

    x = torch.ones(3, requires_grad=True)
    with gradscope.record(check=True) as run:
        loss = Wrong.apply(x).sum()  # type: ignore[no-untyped-call]
        inside = gradscope.check(loss)
    after = run.check(loss)
    for report in (inside, after):
        assert report.checks is not None and report.checks.is_wrong
    assert x.grad is None


def test_a_difference_is_that_of_the_command(session: Session, tmp_path: Path) -> None:
    net, loss = make()
    first, second = gradscope.backward(loss, values=True), gradscope.backward(loss * 2, values=True)
    first.save(tmp_path / "a.json")
    second.save(tmp_path / "b.json")
    assert gradscope.diff(first, tmp_path / "a.json").verdict == "identical"
    difference = gradscope.diff(first, str(tmp_path / "b.json"))
    assert (difference.verdict, len(difference.changes)) == ("different", 1)
    assert {one.name for one in difference.leaves} == {
        name for leaf in first.graph.leaves for name in leaf.names[:1]
    }
    assert net.training
    difference.save(tmp_path / "own.json")
    session.cli("diff", "a.json", "b.json", "-o", "wanted.json")
    own, wanted = ((tmp_path / name).read_text("utf-8") for name in ("own.json", "wanted.json"))
    # But for the names of the files.
    without_names = re.compile(r'"target":\s*"[^"]*"')
    assert without_names.sub("", own) == without_names.sub("", wanted)
    difference.save(tmp_path / "both.dot")
    assert "digraph" in (tmp_path / "both.dot").read_text("utf-8")
    assert len(repr(difference)) <= 200
    with pytest.raises(TypeError, match="b is of type int"):
        gradscope.diff(first, 3)  # type: ignore[arg-type]
    unrelated = gradscope.diff(first, gradscope.Report.of(transformer(layers=1)))
    assert unrelated.verdict == "unrelated"
    with pytest.raises(CaptureError, match="no picture of both"):
        unrelated.save(tmp_path / "none.svg")


# ---------------------------------------------------------------- what is asked of a report


def test_leaves_have_the_gradients_of_autograd() -> None:
    net, loss = make()
    wanted = {
        name: gradient.norm().item()
        for (name, _), gradient in zip(
            net.named_parameters(),
            torch.autograd.grad(loss, list(net.parameters()), retain_graph=True),
            strict=True,
        )
    }
    report = gradscope.backward(loss)
    for name, norm in wanted.items():
        leaf = report.leaf(name)
        assert leaf.gradient is not None
        assert float(leaf.gradient.norm or 0) == pytest.approx(norm)
        assert name in repr(leaf)
    ranked = sorted(wanted, key=lambda name: -wanted[name])
    assert [one.names[0] for one in report.top(3)] == ranked[:3]
    assert [one.names[0] for one in report.top(-2)] == ranked[:1:-1]
    assert gradscope.trace(loss).leaf("0.bias").gradient is None
    with pytest.raises(gradscope.GradscopeError, match=r"nearest first: 0\.weight"):
        report.leaf("0.weigth")
    with pytest.raises(gradscope.GradscopeError, match=r"gradscope\.backward"):
        gradscope.trace(loss).top()


def test_what_is_not_finite_leads_and_what_got_nothing_is_left_out() -> None:
    a, b, c = (torch.tensor([value, 2.0], requires_grad=True) for value in (0.0, 1.0, 3.0))

    class Dropping(torch.autograd.Function):
        @staticmethod
        def forward(_: object, x: torch.Tensor) -> torch.Tensor:
            return x.clone()

        @staticmethod
        def backward(_: object, *__: torch.Tensor) -> None:
            return None

    loss = a.sqrt().sum() + b.sum() + Dropping.apply(c).sum()  # type: ignore[no-untyped-call]
    found = gradscope.backward(loss).top()
    assert [one.names[0] for one in found] == ["a", "b"]


# ---------------------------------------------------------------- how it is written down


def test_a_user_who_uses_everything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """That type checkers agree is a part of `make check` and `make pyright`."""
    told = [*api_user.look(tmp_path), *api_user.ask(), *api_user.train(), *api_user.watch(tmp_path)]
    told.append(api_user.mistake())
    assert all(told) and max(map(len, told)) <= 200
    assert "bytes" in capsys.readouterr().out
    text = Path(api_user.__file__).read_text("utf-8")
    for name in gradscope.__all__:
        assert f"gradscope.{name}" in text, name


@pytest.mark.parametrize(
    ("method", "known"),
    [
        (gradscope.Report.show, ToDraw),
        (gradscope.Report.save, ToDraw),
        (gradscope.Difference.show, ToCompare),
    ],
)
def test_keywords_stand_in_the_signature_with_what_they_are_left_out(
    method: Callable[..., Any], known: type
) -> None:
    parameters = inspect.signature(method).parameters
    own = [one for one in parameters.values() if one.kind is one.KEYWORD_ONLY]
    assert [one.name for one in own if one.name in known.__annotations__] == [
        *known.__annotations__
    ]
    given = {one.name: one.default for one in own if one.name in known.__annotations__}
    # To give the default of every keyword is to give none.
    left_out = drawing("show", known, {"width": 80})
    assert drawing("show", known, {**given, "width": 80}) == left_out


def test_the_reference_is_what_the_docstrings_say() -> None:
    assert reference.PAGE.read_text("utf-8") == reference.page(), "run: make docs"
    assert not reference.undocumented()
    for thing in (getattr(api, name) for name in api.__all__):
        assert thing.__doc__, thing


# ---------------------------------------------------------------- in the words of python


def errors() -> Iterator[Callable[[], object]]:
    """Every mistake that the interface tells of."""
    net, loss = make()
    report = gradscope.backward(loss)
    parts = [torch.ones(2), torch.ones(3)]
    nested = torch.nested.nested_tensor(parts, layout=torch.jagged, requires_grad=True)
    freed = (net(torch.ones(2, 4)) ** 2).sum()
    torch.autograd.backward(freed)
    large = torch.ones(3000, requires_grad=True)
    many = nn.Linear(40, 40)(torch.ones(40, 40))
    roots: list[Any] = [torch.ones(2), [1], net(torch.ones(1, 4)), nested, many]
    looks: tuple[Callable[[torch.Tensor], object], ...] = (
        *(gradscope.backward, gradscope.explain, gradscope.doctor, gradscope.check),
    )
    for root in roots:
        for look in looks:
            yield lambda look=look, root=root: look(root)  # type: ignore[misc]
    for gradient in ([1, 2], "[1", "unknown", "@none.npy", "onehot:9", "[" * 10_000, "1," * 10**6):
        yield lambda gradient=gradient: gradscope.backward(loss, gradient)  # type: ignore[misc]
    every: tuple[Callable[[torch.Tensor], object], ...] = (*looks, gradscope.memory)
    for look in every:
        yield lambda look=look: look(freed)  # type: ignore[misc]
    yield lambda: gradscope.explain(loss, "none")
    yield lambda: gradscope.explain(loss, node=99)
    yield lambda: gradscope.explain(loss, "loss")
    yield lambda: gradscope.explain(
        (large * 2).sum() * large, "large", gradient="ones", jacobian=True
    )
    yield lambda: gradscope.doctor(loss, ignore=["GS000"])
    yield lambda: report.leaf("none")
    yield lambda: gradscope.trace(loss).top()
    yield lambda: gradscope.trace(loss).show(top=3)
    yield lambda: gradscope.trace(loss).show("table", sort="gradient")
    yield lambda: report.show(path="none")
    yield lambda: report.show(focus="none")
    yield lambda: report.show(call=9)
    yield lambda: report.show("svg")  # type: ignore[arg-type]
    yield lambda: report.save("report.none")
    yield lambda: report.save("no/such/folder/report.json")
    yield lambda: report.save("report", format="none")
    yield lambda: gradscope.load("none.json")
    yield lambda: _loaded_in_part(report)
    with gradscope.record(check=True) as run:
        own = net(torch.ones(2, 4)).sum()
    yield lambda: run.check(own, node=99)
    yield lambda: run.check(own, node=len(gradscope.trace(own).graph.nodes) - 1)
    yield run.report
    with gradscope.record(doctor=True) as nothing:
        net(torch.ones(2, 4))
    yield nothing.report
    with gradscope.record(doctor=True) as elsewhere:
        thread = threading.Thread(target=lambda: torch.autograd.backward(make()[1]))
        thread.start()
        thread.join()
    yield elsewhere.report


def _loaded_in_part(report: gradscope.Report) -> None:
    report.save("large.json")
    gradscope.load("large.json", max_size=100)


def test_no_error_speaks_of_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    told = []
    for number, fails in enumerate(errors()):
        with pytest.raises((gradscope.GradscopeError, ValueError)) as caught:
            fails()
            pytest.fail(f"mistake {number} was not noticed")
        told.append(str(caught.value))
    assert len(set(told)) > 30
    for text in told:
        assert not re.search(r"(?<![\w-])(--[a-z]|-o )|::", text), text
    assert any("gradient='ones'" in text for text in told)
    assert any("focus='none'" in text for text in told)


ONLY_TYPED = (
    *("cli/", "target/", "ranks/", "testing/", "options.py"),
    *(f"running/{name}.py" for name in ("watcher", "own_look")),
    *("graphing/roots.py", "graphing/initial_gradient.py"),  # --root and --let
    "model/request.py",  # what is waited for
    "model/history.py",  # of gradscope show run.jsonl
    "rules/rule.py",  # how a rule's page ends
    "analyses/doctor/cases.py",
    "watching/full_looks.py",  # a command to type in a second run
)
"""What only the command line reaches."""


def test_options_are_named_by_those_who_know_the_place() -> None:
    for path in PACKAGE.rglob("*.py"):
        if not str(path.relative_to(PACKAGE)).startswith(ONLY_TYPED):
            names_no_option(path)


def names_no_option(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"))
    spared = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("either", "option"):
            spared |= {id(inner) for inner in ast.walk(node.args[0])}
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in spared
        ):
            assert not re.search(r"(?<![\w-])--[a-z]", node.value), (path, node.value)


def test_the_command_line_keeps_its_words(session: Session) -> None:
    """Also where a program has asked from python just before."""
    path = session.write(
        """
        import gradscope, torch
        x = torch.ones(3, requires_grad=True)
        y = x * 2
        try:
            gradscope.backward(y)
        except gradscope.GradscopeError as error:
            print(error.hint)
        """
    )
    done = session.cli("backward", str(path))
    assert "gradient='ones'" in done.out
    assert "--gradient ones" in done.err


def test_each_error_is_of_its_kind() -> None:
    x = torch.ones(3, requires_grad=True)
    with pytest.raises(RootError):
        gradscope.explain(x * 2)
    with pytest.raises(OutputError):
        gradscope.trace(x).save("report.none")
    with pytest.raises(ValueError, match=r"show\(\) draws tree, code, table, markdown, not svg"):
        gradscope.trace(x).show("svg")  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="one block at a time"):
        _entered_twice()


def _entered_twice() -> None:
    block = gradscope.record()
    with block, block:
        pass


untyped: Any = gradscope
MISTAKES: dict[str, tuple[Callable[[Any, Any], object], str]] = {
    "depth": (lambda r, _: r.show(depth="2"), "show() takes a whole number as depth, not '2'"),
    "by": (lambda r, _: r.show(by="x"), "show() takes one of line, module, op, dtype as by, not"),
    "sort": (lambda r, _: r.save("a.csv", sort="x"), "save() takes one of name, "),
    "node": (lambda _, x: untyped.explain(x, node="1"), "explain() takes a whole number as node"),
    "ignore": (lambda _, x: untyped.doctor(x, ignore=3), "ignore takes codes or names of rules"),
    "size": (lambda *_: untyped.load("a.json", "3"), "load() takes a whole number as max_size"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_what_is_of_another_type_is_told_in_words_of_python(name: str) -> None:
    call, words = MISTAKES[name]
    _, loss = make()
    with pytest.raises(TypeError) as told:
        call(gradscope.trace(loss), loss)
    assert str(told.value).startswith(words)


SMALL = [
    *(("show", "depth", -1, 1), ("save", "depth", 0, 1), ("show", "lines", 0, 1)),
    *(("show", "width", 19, 20), ("diff", "top", 0, 1), ("load", "max_size", 0, 1)),
]


@pytest.mark.parametrize(("method", "name", "value", "least"), SMALL)
def test_a_number_that_is_too_small_is_told_so(
    method: str, name: str, value: int, least: int
) -> None:
    report = gradscope.trace(make()[1])
    calls: dict[str, tuple[Callable[..., object], list[str]]] = {
        "save": (report.save, ["no.txt"]),
        "load": (gradscope.load, ["no.json"]),
        "diff": (gradscope.diff(report, report).show, []),
    }
    call, given = calls.get(method, (getattr(report, method, print), []))
    with pytest.raises(ValueError) as told:
        call(*given, **{name: value})
    words = f"{call.__name__}() takes a whole number from {least} up as {name}, not {value}"
    assert str(told.value) == words


def test_every_keyword_refuses_what_it_cannot_be(capsys: pytest.CaptureFixture[str]) -> None:
    _, loss = make()
    report = gradscope.backward(loss)
    with gradscope.record(doctor=True, check=True) as run:
        _, inside = make()
        inside.backward()  # type: ignore[no-untyped-call]
    calls: list[tuple[Any, tuple[Any, ...]]] = [
        *((getattr(gradscope, name), (loss,)) for name in ("trace", "backward", "explain")),
        *((getattr(gradscope, name), (loss,)) for name in ("check", "doctor")),
        *((getattr(run, name), (inside,)) for name in ("trace", "backward", "explain")),
        *((getattr(run, name), (inside,)) for name in ("check", "doctor")),
        *((getattr(report, name), ()) for name in ("show", "leaf", "top")),
        *((report.page, ()), (report.save, ("no.txt",)), (gradscope.load, ("no.json",))),
        *((gradscope.diff, (report, report)), (gradscope.record, ())),
    ]
    for call, given in calls:
        asked = list(inspect.signature(call).parameters.values())[len(given) :]
        for one in asked:
            if one.kind is one.VAR_KEYWORD:
                continue
            error = gradscope.GradscopeError if one.name == "gradient" else (TypeError, ValueError)
            with pytest.raises(error) as told:
                call(*given, **{one.name: object()})
            words = str(told.value)
            assert one.name in words or f"{call.__name__}()" in words, (call, one, words)
            assert "--" not in words
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("name", ["trace", "backward", "explain", "check", "memory", "doctor"])
def test_a_root_without_history_is_told_first(name: str) -> None:
    plain = torch.ones(3)
    with pytest.raises(RootError, match=r"^plain carries no gradient history"):
        getattr(gradscope, name)(plain)
    with pytest.raises(RootError, match=r"^the root is of type int, not a tensor"):
        getattr(gradscope, name)(5)
