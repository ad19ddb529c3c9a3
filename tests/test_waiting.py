"""What is said of waiting and stopping: where a program was cut off, and what is refused before it
runs."""

from __future__ import annotations

import pytest

from tests.looking import Session

HEAD = "import torch\nx = torch.tensor([1.0, 2.0], requires_grad=True)\n"
TWICE = HEAD + "for i in range(2):\n    (x * x).sum().backward()\nprint('the end')\n"
IN_MAIN = (
    HEAD + "def main():\n    (x * x).sum().backward()\nif __name__ == '__main__':\n    main()\n"
)
FIT = "def fit(loss):\n    loss.backward()\n"
INSTALLED = (
    HEAD
    + f"exec(compile({FIT!r}, '/site-packages/lightning/fit.py', 'exec'))\nfit((x * x).sum())\n"
)
INSTALLED += "fit((x * 3).sum())\nprint('')\n"

# ---------------------------------------------------------------------- stopped


@pytest.mark.parametrize(
    ("text", "arguments", "told"),
    [
        (TWICE, (), "stopped at backward call 1 (program.py:4); --run-on lets it go on, --call 2"),
        (TWICE, ("--call", "2"), "stopped at backward call 2 (program.py:4); --run-on lets it"),
        (TWICE, ("--steps", "2"), "stopped at backward call 2 (program.py:4); --run-on lets it"),
        (
            TWICE,
            ("--root", "x.sum()"),
            "stopped at backward call 1 (program.py:4); --run-on lets it",
        ),
        (TWICE, ("--run-on",), ""),
        (TWICE, ("-q",), ""),
        (IN_MAIN, (), ""),
        (IN_MAIN + "print(x.grad)\n", (), "(program.py:4); --run-on lets it go on\n"),
        (IN_MAIN + "main()\n", ("-q",), ""),
        (INSTALLED, (), "stopped at backward call 1 (program.py:4); --run-on lets it go on"),
    ],
)
def test_it_is_told_where_the_rest_of_a_program_was_cut_off(
    text: str, arguments: tuple[str, ...], told: str, session: Session
) -> None:
    done = session.cli("backward", str(session.write(text)), *arguments)
    assert told in done.err
    assert done.err.count("stopped at") == bool(told)
    assert ("the end" in done.out) == ("--run-on" in arguments)


def test_calls_of_an_installed_trainer_have_the_lines_that_call_it(session: Session) -> None:
    done = session.cli("backward", str(session.write(INSTALLED)), "--steps", "2", "-q")
    assert "backward call 2 walks another graph (fit((x * 3).sum()) program.py:5)" in done.out


@pytest.mark.parametrize(
    ("code", "is_told"),
    [
        ("(x * x).sum().backward()", False),
        ("(x * x).sum().backward(); x.grad", True),
        ("y = (x * x).sum(); y.backward()", False),
    ],
)
def test_the_last_expression_of_code_is_its_end(code: str, is_told: bool, session: Session) -> None:
    done = session.cli("trace", "-c", code, "--let", "x=[1,2]")
    assert ("stopped at backward call 1" in done.err) == is_told


@pytest.mark.parametrize(
    "made",
    [
        "exec('lo' + 's = x.sum()')",
        "globals()['lo' + 's'] = x.sum()",
        "import sys; setattr(sys.modules['__main__'], 'lo' + 's', x.sum())",
        "from maker import *",
        "import numpy as np, maker; from maker import los",
        "# los\nimport importlib; los = importlib.import_module('maker').los",
    ],
)
def test_a_name_that_is_made_as_the_program_runs_is_found(made: str, session: Session) -> None:
    session.write(HEAD + "los = x.sum()\n", "maker.py")
    text = f"{HEAD}{made}\n(x * x).sum().backward()\n"
    assert session.look(text, "--root", "los").graph.nodes[0].op == "SumBackward0"


def test_a_gradient_that_the_program_writes_is_read(session: Session) -> None:
    text = HEAD + "torch.save(torch.ones(2), f'{1}.pt')\n(x * x).sum().backward()\n"
    report = session.look(text, "--root", "x * x", "--gradient", "@1.pt")
    assert report.passes


@pytest.mark.parametrize(
    ("side", "told"),
    [
        ("nosuch.py", "can't open file"),
        ("a.py --graident 1", "No such option"),
        ("broken.json", "broken.json"),
    ],
)
def test_diff_looks_at_both_sides_before_either_runs(
    side: str, told: str, process: Session
) -> None:
    process.write(HEAD + "print('begun')\nx.sum().backward()\n", "a.py")
    process.write("{}", "broken.json")
    done = process.cli("diff", "a.py", side)
    assert told in done.err
    assert done.status == 2
    assert "begun" not in done.out + done.err


# ---------------------------------------------------------------------- what never came

BAD = HEAD + "y = x * 2\nif y.sum() > 100:\n    later = y * 2\n1 / 0\n"


@pytest.mark.parametrize("command", ["trace", "backward"])
def test_a_root_is_not_taken_from_before_a_call_that_never_came(
    command: str, session: Session
) -> None:
    text = TWICE.replace("(x * x).sum()", "loss = (x * x).sum(); loss")
    done = session.cli(command, str(session.write(text)), "--root", "loss", "--call", "3")
    assert done.status == 2
    assert "the program made 2 backward calls, so there is no call 3" in done.err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "ended with ZeroDivisionError; this is the graph of the last result it had made"),
        (("--root", "y"), "ended with ZeroDivisionError; this is the graph of --root y"),
        (("--root", "later"), "ZeroDivisionError, and no variable --root later was there by then;"),
        (
            ("--call", "2"),
            "ZeroDivisionError before backward call 2; this is the graph of the last",
        ),
    ],
)
def test_what_was_waited_for_when_the_program_failed_is_told(
    arguments: tuple[str, ...], told: str, session: Session
) -> None:
    assert told in session.look(BAD, *arguments, command="trace").notes[0]


ROOTS = """
import torch
from torch import nn
x = torch.ones(2, requires_grad=True)
def compute():
    hidden = x * 2
    return hidden.sum()
def main():
    model = nn.Linear(2, 1)
    late = None
    out = compute()
    for i in range(3):
        model(x).sum().backward()
        if i == 1:
            late = x * 3
    print("the end")
main()
kept = []
data = torch.ones(2)
(x * x).sum().backward()
data.requires_grad_()
print("almost")
(data * x).sum().backward()
kept = x * 4
print("the very end")
x.sum().backward()
"""


@pytest.mark.parametrize(
    ("root", "printed"),
    [
        # Taken as soon as it is there.
        *(("late", ""), ("data", "the end almost"), ("kept", "the end almost the very end")),
        # It never comes, which is told at the end.
        *((root, "the end almost the very end") for root in ("model", "hidden")),
    ],
)
def test_a_root_is_taken_as_soon_as_it_is_there(root: str, printed: str, session: Session) -> None:
    done = session.told(ROOTS, "backward --gradient ones --root", root)
    assert " ".join(done.out.partition("\nprogram.py")[0].split()).startswith(printed)
    is_missed = root in ("model", "hidden")
    assert (done.status, f"--root {root}" in done.err) == ((2, True) if is_missed else (0, False))


@pytest.mark.parametrize(
    "change",
    [
        "for i in range(2):\n    if i: later = x * 2\n    x.sum().backward()\n",
        "if x.sum() > 0:\n    x.sum().backward()\n    later = x * 2\n",
    ],
)
def test_a_root_that_may_yet_come_is_waited_for(change: str, session: Session) -> None:
    report = session.look(
        HEAD + change + "x.sum().backward()\n", "--root", "later", command="trace"
    )
    assert report.graph.nodes[0].op == "MulBackward0"
