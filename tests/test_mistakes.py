"""The mistakes B1 to B8: what is said instead of a stack trace, and what stays untouched."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradscope.model import storage
from tests.conftest import python_says
from tests.looking import Done, Session, own_words
from tests.own_functions import function

EARLIER = "an earlier result\n"
HEAD = "import torch\nx = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)\n"


def fails(session: Session, text: str, *arguments: str) -> Done:
    """Run a command that cannot succeed: status 2, our words only, the output file as it was."""
    output = session.folder / "kept.json"
    output.write_text(EARLIER, "utf-8")
    done = session.cli("backward", str(session.write(text)), "-o", str(output), *arguments)
    assert done.status == 2, done
    assert "Traceback" not in done.err
    assert done.err.startswith("gradscope: ")
    assert all(line.startswith("gradscope: ") for line in done.err.splitlines())
    assert output.read_text("utf-8") == EARLIER
    return done


# ---------------------------------------------------------------------- B1


def test_b1_a_root_with_several_elements_needs_a_gradient(session: Session) -> None:
    said = fails(session, HEAD + "y = x * 2\n").err
    assert "the root has shape [3]" in said
    assert "--gradient ones" in said
    assert '--gradient "[1, 1, 1]"' in said
    assert session.cli("backward", "--gradient", "[1, 1, 1]").status == 0


def test_b1_the_programs_own_mistake_stays_its_own(session: Session) -> None:
    path = str(session.write(HEAD + "y = x * 2\ny.backward()\n"))
    done = session.cli("backward", path)
    assert done.status == 1
    assert python_says(path).err in done.err


# ---------------------------------------------------------------------- B2


@pytest.mark.parametrize(
    ("root", "gradient", "said"),
    [
        ("x.sum()", "[1, 2, 3]", ["[3]", "[]"]),
        ("x.sum(0, keepdim=True)", "[1, 2, 3]", ["[3]", "[1]"]),
        ("x.sum()", "[1, 2]", ["[2]", "[]"]),
        ("x[:2].outer(x[:2])", "[1, 2, 3, 4]", ["[4]", "[2, 2]", '"[[1, 2], [3, 4]]"']),
        ("x * 2", "[[1, 2, 3]]", ["[1, 3]", "[3]", '"[1, 2, 3]"']),
        ("x * 2", "[1, 2]", ["[2]", "[3]", '"[1, 1, 1]"']),
    ],
)
def test_b2_a_gradient_of_another_shape(
    root: str, gradient: str, said: list[str], session: Session
) -> None:
    done = fails(session, HEAD + f"y = {root}\n", "--gradient", gradient)
    assert "the gradient has shape" in done.err
    assert all(part in done.err for part in said), done.err


def test_b2_one_number_fits_any_root_of_one_element(session: Session) -> None:
    report = session.look(HEAD + "y = x.sum(0, keepdim=True)\n", "--gradient", "2")
    assert report.passes[0].gradients[report.passes[0].seeds[0]].values == (2.0,)


# ---------------------------------------------------------------------- B3


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("w = torch.ones(3)\ny = w * 2\n", ["`w * 2` at program.py:4", "requires_grad=True"]),
        ("with torch.no_grad():\n    y = x * 2\n", ["`x * 2` at program.py:4", "torch.no_grad()"]),
        ("y = (x * 2).detach()\n", ["`(x * 2).detach()` at program.py:3", "detach", "cut it off"]),
        ("y = (x * 2).argmax()\n", ["`(x * 2).argmax()` at program.py:3", "int64"]),
        ("y = (x * 2).data\n", ["program.py:3", "cut it off"]),
        ("y = torch.tensor([1, 2])\n", ["`torch.tensor([1, 2])` at program.py:3", "int64"]),
        ("y = x.tolist()\n", ["is of type list, not a tensor"]),
        ("y = {'loss': x * 2, 'n': 3}\n", ["is of type dict, not a tensor", "y['loss']"]),
    ],
)
def test_b3_a_root_without_history(program: str, said: list[str], session: Session) -> None:
    done = fails(session, HEAD + program, "--root", "y")
    assert all(part in done.err for part in said), done.err


def test_b3_nothing_requires_grad(session: Session) -> None:
    done = fails(session, "import torch\ny = torch.ones(3) * 2\n")
    assert "no tensor of the program requires grad" in done.err


def test_b3_the_last_value_of_code_has_no_history(session: Session) -> None:
    done = session.cli("backward", "-c", "a.detach() * 2", "--let", "a=3")
    assert done.status == 2
    assert "`a.detach() * 2` at <string>:1" in done.err


# ---------------------------------------------------------------------- B4

TWICE = HEAD + "h = x.exp()\na = (h * h).sum()\nb = (h * 3).sum()\na.backward()\nb.backward()\n"


def notes_of_failure(session: Session, text: str, *arguments: str) -> list[str]:
    """The notes of the report of a program that fails by itself; they are told on stderr too."""
    path = str(session.write(text))
    output = session.folder / "report.json"
    done = session.cli("backward", path, *arguments, "-o", str(output))
    assert done.status == 1
    assert done.err.startswith("Traceback (most recent call last):\n")
    shown = done.err.partition("\ngradscope: ")[0]
    assert not own_words(shown)
    notes = list(storage.load(output).notes)
    assert all(note in done.err for note in notes)
    return notes


@pytest.mark.parametrize(
    "mistake", ["y.sum().backward()\ny.sum().backward()\n", "y += 1\ny.sum().backward()\n"]
)
def test_b4_and_b6_the_programs_exception_is_as_python_shows_it(
    mistake: str, session: Session
) -> None:
    path = str(session.write(HEAD + "y = x.exp()\n" + mistake))
    call = str(mistake.count("backward"))
    done = session.cli("backward", path, "--call", call, "-o", "report.json")
    alone = python_says(path)
    assert done.status == alone.status == 1
    assert done.err.startswith(alone.err), f"{alone.err}\n---\n{done.err}"
    assert len(done.err) > len(alone.err)


def test_b4_buffers_freed_by_an_earlier_call(session: Session) -> None:
    notes = notes_of_failure(session, TWICE, "--call", "2")
    (note,) = notes
    assert "freed by `a.backward()` at program.py:6" in note
    assert "ExpBackward0 (`x.exp()` at program.py:3)" in note
    assert "retain_graph=True" in note


# ---------------------------------------------------------------------- B5


def test_b5_the_grad_of_a_result_is_none_and_shown_here(session: Session) -> None:
    report = session.look(HEAD + "y = x * 2\nloss = y.sum()\nloss.backward()\nprint(y.grad)\n")
    (note,) = report.notes
    assert note.startswith("y.grad, read at line 6, stays None: y is not a leaf")
    assert "retain_grad" in note


def test_b5_nothing_is_said_where_the_gradient_is_retained(session: Session) -> None:
    text = HEAD + "y = x * 2\ny.retain_grad()\ny.sum().backward()\nprint(y.grad, x.grad)\n"
    assert session.look(text).notes == ()


# ---------------------------------------------------------------------- B6

FUNCTION = "\n" + function("Product", "a * b", "grad * b, grad * a", given="a, b", keeps="a, b")


@pytest.mark.parametrize(
    ("program", "saver", "changer"),
    [
        ("y = x.exp()\ny.add_(1)\n", "`x.exp()` at program.py:3", "`y.add_(1)` at program.py:4"),
        (
            "w = torch.nn.Parameter(x.detach())\ny = x * w\nw.grad = w.detach()\n"
            "torch.optim.SGD([w], lr=0.1).step()\n",
            "`x * w` at program.py:4",
            "`torch.optim.SGD([w], lr=0.1).step()` at program.py:6",
        ),
        (
            "p, q = x * 1, x * 2\nother = torch.ones(3)\nPRODUCT\nother.add_(1)\nq.mul_(2)\n",
            "`y = Product.apply(p, q)` at",
            "`q.mul_(2)` at",
        ),
        # The same line again and again.
        (
            "for _ in range(20):\n    y = x.exp()\n    y.mul_(2)\n",
            "`x.exp()` at program.py:4",
            "`y.mul_(2)` at program.py:5",
        ),
    ],
)
def test_b6_changed_after_it_was_saved(
    program: str, saver: str, changer: str, session: Session
) -> None:
    program = program.replace("PRODUCT", FUNCTION + "y = Product.apply(p, q)")
    notes = notes_of_failure(session, HEAD + program + "y.sum().backward()\n")
    (note,) = notes
    assert saver.removeprefix("`y = ").split("` at")[0] in note
    assert saver.split(" at")[1] in note
    assert f"{changer}" in note
    assert note.index(saver.split("` at")[0].removeprefix("`y = ")) < note.index(changer)


MET = {
    "freed": (
        "y = (x * x).sum()\ny.backward()\ny.backward()\n",
        "--call 2 --gradient 2",
        "RuntimeError: Trying to backward through the graph a second",
        "freed by `y.backward()` at program.py:4",
    ),
    **{
        f"changed {asked}": (
            "y = x.exp()\ny.add_(1)\n",
            asked,
            "modified by an inplace operation",
            "`x.exp()` at program.py:3",
            "`y.add_(1)` at program.py:4 changed it in place",
        )
        for asked in ("--gradient ones", "--root y.sum()")
    },
    "an error of the user's function": (
        FUNCTION.replace("a, b, = ctx.saved_tensors", "raise KeyError('no')")
        + "y = Product.apply(x, x)\n",
        "--gradient ones",
        "KeyError: 'no'",
        "`raise KeyError('no')` at program.py:11",
    ),
}


@pytest.mark.parametrize("name", MET)
def test_b4_and_b6_when_our_own_pass_meets_it(name: str, session: Session) -> None:
    program, asked, *told = MET[name]
    done = fails(session, HEAD + program, *asked.split())
    assert "backward failed with " in done.err
    assert [words for words in told if words not in done.err] == []


# ---------------------------------------------------------------------- B7


def test_b7_an_unknown_root_lists_the_names_there_are(session: Session) -> None:
    # One that makes names as it runs may come to have the root; else it would not be run at all.
    text = HEAD + "losses = x * 2\nloss = losses.sum()\nexec('other = 3')\nloss.backward()\n"
    said = fails(session, text, "--root", "los").err
    assert "--root los" in said
    listed = said.split("available tensors: ")[1]
    assert listed.startswith("loss")
    assert {"loss", "losses", "x"} <= set(listed.strip().split(", "))
    assert "other" not in listed


@pytest.mark.parametrize("root", ["y[7]", "y.nothing", "y +", "1/0", "y['a']"])
def test_b7_a_root_that_does_not_evaluate(root: str, session: Session) -> None:
    assert "--root" in fails(session, HEAD + "y = x * 2\n", "--root", root).err


# ---------------------------------------------------------------------- B8


@pytest.mark.parametrize(
    ("gradient", "said"),
    [
        ("[1, 2", "is not valid Python (character"),
        ("[1, [2], 3]", "is not a tensor: TypeError: must be real number, not list"),
        ("[[1, 2], [3]]", "is not a tensor: ValueError: expected sequence of length 2 at dim 1"),
        ("[1, 'two', 3]", "is not a tensor: TypeError: must be real number, not str"),
        ("[1, 1e300, 3]", "too large for float32"),
        ("[" * 5000 + "1" + "]" * 5000, "too many nested parentheses"),
        ("[" + "1," * 100_000 + "]", "characters long"),
        ("[1j, 1, 1]", "complex"),
        ("nosuch", "no variable is called 'nosuch'"),
        ("onehot:x", "not an index"),
        ("onehot:7", "which has shape [3]\ngradscope: give 1 index: one a dimension, smaller"),
        ("@nosuch.npy", "cannot read a gradient from nosuch.npy"),
        ("@program.py", "cannot tell the format"),
        ("", "is not valid Python"),
        ("{1: 2}", "is not a tensor"),
        ("print", "is not a tensor"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_b8_text_that_is_no_gradient(gradient: str, said: str, session: Session) -> None:
    done = fails(session, HEAD + "y = x * 2\n", "--gradient", gradient)
    assert said in done.err
    assert len(done.err) < 600


def test_b8_what_a_gradient_can_be(session: Session, tmp_path: Path) -> None:
    import numpy
    import torch

    numpy.save(tmp_path / "g.npy", numpy.array([1, 2, 3]))
    torch.save(torch.tensor([1.0, 2.0, 3.0]), tmp_path / "g.pt")
    (tmp_path / "g.json").write_text("[1, 2, 3]", "utf-8")
    text = HEAD + "y = x * 2\nweights = torch.tensor([1, 2, 3])\n"
    forms = ["[1, 2, 3]", "(1, 2, 3)", "@g.npy", "@g.pt", "@g.json", "weights", "weights.tolist()"]
    wanted: dict[str, tuple[object, ...]] = dict.fromkeys(forms, (1.0, 2.0, 3.0))
    wanted |= {"[nan, inf, 1]": ("NaN", "Infinity", 1.0), "onehot:1": (0.0, 1.0, 0.0)}
    for form, values in wanted.items():
        report = session.look(text, "--root", "y", "--gradient", form)
        assert report.passes[0].at(0).values == values, form
