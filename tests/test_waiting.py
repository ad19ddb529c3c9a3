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
    ],
)
def test_it_is_told_where_the_rest_of_a_program_was_cut_off(
    text: str, arguments: tuple[str, ...], told: str, session: Session
) -> None:
    done = session.cli("backward", str(session.write(text)), *arguments)
    assert told in done.err
    assert done.err.count("stopped at") == bool(told)
    assert ("the end" in done.out) == ("--run-on" in arguments)


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


def test_a_file_whose_function_is_still_to_be_called_is_not_at_its_end(session: Session) -> None:
    path = session.write(HEAD + "def f():\n    return x.sum()\n(x * x).sum().backward()\n")
    assert "stopped at backward call 1" in session.cli("trace", f"{path}::f").err
