"""Programs under torch.compile: what is hidden, what --eager shows, and that nobody is in the way.

The backend is ``aot_eager``, which makes the same nodes as the default one and needs no compiler
of C++."""

from __future__ import annotations

import textwrap
import warnings

import pytest
import torch

from tests.looking import Session, expressions, leaf_named, new_gradient

SICK = """
    import torch
    from torch import nn
    torch.manual_seed(0)
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(4, 8)
            self.second = nn.Linear(8, 1)
        def forward(self, x):
            h = self.first(x).relu()
            h = (h - h).sqrt()
            return self.second(h)
    net = torch.compile(Net(), backend="aot_eager")
    net(torch.randn(16, 4)).square().mean().backward()
    """
CUT = SICK.replace("h = (h - h).sqrt()", "h = h.detach()").replace(
    "    net(torch", "    opt = torch.optim.SGD(net.parameters(), lr=0.1)\n    net(torch"
)
BREAKS = """
    import torch
    @torch.compile(backend="aot_eager")
    def f(x):
        y = x.sin()
        if y.sum() > 0:
            y = y * 2
        return y.exp()
    x = torch.ones(3, requires_grad=True)
    f(x).sum().backward()
    """


@pytest.fixture(autouse=True)
def _nothing_compiled_before() -> None:
    torch._dynamo.reset()


@pytest.mark.parametrize(
    ("program", "hides", "shows"),
    [
        (
            SICK,
            ("`net(torch.randn(16, 4))` turns a finite gradient", "Run with --eager"),
            "program.py:11 · (h - h).sqrt()",
        ),
        # What compiled code cuts off is found all the same.
        (CUT, ("GS301", "first is used in `net(torch.randn(16, 4))`"), "GS303 history-cut"),
    ],
)
def test_a_finding_inside_compiled_code_names_the_call_and_the_option(
    program: str, hides: tuple[str, str], shows: str, session: Session
) -> None:
    hidden, shown = (
        " ".join(session.told(program, f"doctor {more}").out.split()) for more in ("", "--eager")
    )
    assert [words for words in hides if words not in hidden] == []
    assert shows in shown
    assert "--eager" not in shown
    assert "_orig_mod" not in hidden + shown


@pytest.mark.parametrize(
    "command", ["trace", "backward", "memory", "explain", "check", "depends --on first.weight"]
)
def test_every_command_that_runs_a_program_can_run_it_uncompiled(
    session: Session, command: str
) -> None:
    command, *more = command.split()
    report = session.look(SICK, "--eager", *more, command=command)
    assert not [node for node in report.graph.nodes if node.kind == "opaque"]
    assert "(h - h).sqrt()" in expressions(report)
    assert torch._dynamo.eval_frame._stance.stance == "default"


def test_uncompiled_is_what_the_program_does_under_the_same_stance(session: Session) -> None:
    stance = "torch.compiler.set_stance('force_eager')\n"
    program = textwrap.dedent(BREAKS)
    mine = session.look(program, "--eager", "--values")
    theirs = session.look(program.replace("x = torch", stance + "x = torch"), "--values")
    torch.compiler.set_stance("default")
    assert new_gradient(mine, "x") == new_gradient(theirs, "x")


def test_looking_breaks_no_graph_of_its_own(session: Session) -> None:
    counting = textwrap.dedent(BREAKS) + (
        "import torch._dynamo.utils as u\n"
        "print(len(u.graph_break_reasons), u.counters['frames']['total'])\n"
    )
    path = session.write(counting)
    torch._dynamo.utils.counters.clear()
    with warnings.catch_warnings(action="ignore"):  # torch hides one of its own
        exec(compile(counting, str(path), "exec"), {"__name__": "__main__"})
    alone = len(torch._dynamo.utils.graph_break_reasons)
    frames = torch._dynamo.utils.counters["frames"]["total"]
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    done = session.cli("backward", "--run-on", "program.py")
    assert done.out.startswith(f"{alone} {frames}\n")


def test_a_stance_of_the_program_has_the_last_word(session: Session) -> None:
    default = "torch.compiler.set_stance('default')\n"
    program = textwrap.dedent(BREAKS).replace("x = torch", default + "x = torch")
    report = session.look(program, "--eager")
    (told,) = [note for note in report.notes if "hides" in note]
    assert "calls torch.compiler.set_stance itself" in told


def test_without_anything_compiled_the_option_says_nothing(session: Session) -> None:
    session.write("import torch\nx = torch.ones(2, requires_grad=True)\nx.sin().sum().backward()\n")
    plain, eager = (session.cli("backward", "program.py", *more) for more in ([], ["--eager"]))
    assert plain == eager


def test_of_a_saved_report_the_option_is_told_to_need_the_program(session: Session) -> None:
    session.told(SICK, "doctor -o seen.json")
    done = session.cli("doctor", "seen.json", "--eager")
    assert "is a saved report; ignored, because they need the program: --eager" in done.err
    assert done.status == 1
    session.cli("memory", "program.py", "-o", "kept.json")
    assert "need the program: --eager" in session.cli("memory", "kept.json", "--eager").err


def test_wrappers_of_torch_leave_names(session: Session) -> None:
    report = session.look("""
        import torch
        from torch import nn
        inner = torch.compile(nn.Linear(2, 2), backend="aot_eager")
        net = torch.compile(nn.Sequential(inner, nn.DataParallel(nn.Linear(2, 1))), backend="eager")
        net(torch.ones(3, 2)).sum().backward()
        """)
    assert leaf_named(report, "0.weight")
    assert leaf_named(report, "1.weight")
    names = [*(name for leaf in report.graph.leaves for name in leaf.names)]
    names += [call.path for call in report.graph.calls]
    assert not [name for name in names if "_orig_mod" in name or "module" in name], names
