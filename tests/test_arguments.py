"""Which words of a command line go to the program, and what is said of that."""

from __future__ import annotations

import shlex

import pytest

from tests.looking import Session

TELLS = "import sys\nimport torch\nprint(sys.argv[1:])\n"
DECLARED = ("--lr", "--steps", "--format", "--step", "-lr", "-out")
PROGRAMS = {
    "plain.py": "import torch\n",
    "told.py": "'gradscope told.py --all'\n" + TELLS,
    "train.py": TELLS + "".join(f"sys.argv.count('{option}')\n" for option in DECLARED),
    "by name.py": TELLS + "value = 3\nprint(f'--{value}', file=sys.stderr)\n",
    "split.py": TELLS + "import options\n",
    "options.py": "USAGE = '''usage: split.py [--value N | --no-color]'''\n",
}
GOES = "(whatever follows -- goes to the program)"


@pytest.fixture
def programs(session: Session) -> Session:
    """A user with programs that tell what they are given."""
    for name, text in PROGRAMS.items():
        (session.folder / name).write_text(text)
    return session


@pytest.mark.parametrize(
    ("typed", "passed"),
    [
        ("train.py --lr 0.1 --epochs 2 --depth 1", "--lr 0.1 --epochs 2"),
        ("train.py --depth 1 --lr=-0.1 -v", "--lr=-0.1 -v"),
        ("--depth 1 train.py data --all more", "data more"),
        ("train.py -lr 0.1 -out 5 --width=80", "-lr 0.1 -out 5"),
        # Nearly --depth and --values, which the program has said that it knows.
        ("train.py --step 1", "--step 1"),
        ("split.py --value 3 --no-color", "--value 3 --no-color"),
        ("'by name.py' --value 3", "--value 3"),
        # An option of other commands, and one that names another program.
        ("train.py --steps 3", "--steps 3"),
        ("train.py -c config.yaml -m=x", "-c config.yaml -m=x"),
        ("train.py --lr 1 -- --depth 2", "--lr 1"),
        (f"-c {shlex.quote(TELLS)} --lr 1 two", "--lr 1 two"),
    ],
)
def test_what_is_not_ours_goes_to_the_program(typed: str, passed: str, programs: Session) -> None:
    done = programs.cli("trace", *shlex.split(typed))
    name = shlex.join(shlex.split(typed.removeprefix("--depth 1 "))[:1]).replace(
        "-c", "the program"
    )
    assert done.err.startswith(f"gradscope: arguments for {name}: {passed} {GOES}\n")
    last = shlex.split(typed.partition(" -- ")[2])
    assert done.out == f"{[*shlex.split(passed), *last]}\n"
    assert done.status == 0
    again = programs.cli("trace")
    assert again.out == done.out


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("train.py --lr 1 --format json -q", ""),
        (
            "train.py --lr 1 --format tree --all",
            "--format tree is read by gradscope, though train.py has an option of this name, too; "
            "for the program: gradscope trace train.py --all -- --lr 1 --format tree",
        ),
        (
            "train.py --format tree --all -lr",
            "--format tree is read by gradscope, though train.py has an option of this name, too; "
            "for the program: gradscope trace train.py --all -- -lr --format tree",
        ),
        ("--format tree train.py", ""),
        ("told.py --all", ""),
    ],
)
def test_an_option_of_both_is_ours_and_that_is_said(
    typed: str, said: str, programs: Session
) -> None:
    done = programs.cli("trace", *shlex.split(typed))
    assert done.status == 0
    assert ("is read by gradscope" in done.err) == bool(said)
    assert said in done.err
    if said:
        retyped = said.partition("gradscope trace ")[2]
        assert "'--format', 'tree'" in programs.cli("trace", *shlex.split(retyped)).out


OWN = "arguments for your own program go after `--`: gradscope "


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (
            "backward train.py --graident ones --all",
            f"Did you mean '--gradient'?\ngradscope: {OWN}"
            "backward train.py --all -- --graident ones\n",
        ),
        (
            "trace train.py --stesp 3",
            "--steps is an option of gradscope backward and gradscope doctor",
        ),
        (
            "trace train.py --gradient ones",
            "gradscope: --gradient is an option of gradscope backward, gradscope explain, "
            "gradscope check and gradscope diff\n",
        ),
        (
            "trace train.py --lr 1 --format yaml",
            "though train.py has an option of this name, too; for the program: gradscope trace "
            "train.py -- --lr 1 --format yaml\n",
        ),
        ("trace --lr 1 -o x.svg train.py", f"gradscope: {OWN}trace -o x.svg train.py -- --lr 1\n"),
        ("doctor --lr=1 -q", f"gradscope: {OWN}doctor -q -- --lr=1\n"),
        (
            "trace plain.py --lr 1 -- x",
            "gradscope: plain.py reads no arguments; to pass some all the same: "
            "gradscope trace plain.py -- --lr 1 x\n",
        ),
        (
            "trace plain.py train.py",
            "unexpected extra argument (train.py)\ngradscope: plain.py reads no arguments; to pass "
            "some all the same: gradscope trace plain.py -- train.py\n",
        ),
        ("trace plain.py -c code", "two programs given at once"),
        ("doctor a.json --lr 1", "gradscope: a.json is a saved report, and takes no arguments\n"),
        ("diff train.py b.py --lr 1", f"gradscope: {OWN}diff train.py b.py -- --lr 1\n"),
        (
            "diff 'train.py --graident 1' train.py",
            f"gradscope: {OWN}backward train.py -- --graident 1\n",
        ),
    ],
)
def test_a_slip_is_told_before_the_program_runs(typed: str, said: str, programs: Session) -> None:
    done = programs.cli(*shlex.split(typed))
    assert (done.status, done.out) == (2, "")
    assert said in done.err
