"""What a target is, how it is found, and how whoever runs it sees it end."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import gradscope.target
from gradscope.cli.folder import recall, remember
from gradscope.errors import TargetError
from gradscope.target import Ending, Program, StopProgram, Target, parse_target, raise_interrupt
from tests.conftest import process_preserved
from tests.fuzz.process import ran

PROJECT = Path(gradscope.target.__file__).parents[2]

FUNCTIONS = """
import math
loaded_as = __name__
number = 3
def loss(): return 42
def losses(): return [loss()]
def lots(a, b=1, *rest, c, **more): return a
def fails(): return number / 0
class Model:
    @staticmethod
    def build(): return "built"
    def forward(self, x): return x
if __name__ == "__main__":
    raise SystemExit("ran as a script")
"""


def run(target: Target, **callbacks: Callable[..., None]) -> Ending:
    """Run a target in this process and leave the process as it was."""
    with process_preserved():
        return Program.prepare(target).run(**callbacks)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("train.py", "script"),
        ("C:\\train.py", "script"),
        ("train", "script"),
        ("-", "stdin"),
        ("train.py::loss", "function"),
        ("C:\\train.py::Model.build", "function"),
        ("odd::name", "script"),
    ],
)
def test_a_typed_word_tells_its_kind(text: str, kind: str, here: Path) -> None:
    (here / "odd::name").touch()
    assert parse_target(text, ["--lr", "3"]) == Target(kind, text, ("--lr", "3"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("target", "typed"),
    [
        (Target("script", "train.py", ("--lr", "3")), "train.py -- --lr 3"),
        (Target("script", "my train.py"), "'my train.py'"),
        (Target("module", "pkg.mod"), "-m pkg.mod"),
        (Target("code", "a*b", lets=(("a", "[1, 2]"),)), "-c 'a*b' --let 'a=[1, 2]'"),
        (Target("function", "train.py::loss"), "train.py::loss"),
        (Target("stdin", "-"), "-"),
    ],
)
def test_a_target_is_described_as_typed_and_remembered(
    here: Path, monkeypatch: pytest.MonkeyPatch, target: Target, typed: str
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(here))
    assert target.describe() == typed
    remember(target)
    if target.kind != "stdin":  # which can be read only once
        assert recall() == target


@pytest.mark.parametrize(
    "data",
    [
        "",
        "[]",
        '{"kind": "file", "text": "a"}',
        '{"kind": "script"}',
        '{"kind": "script", "text": "a", "arguments": "bc"}',
        '{"kind": "code", "text": "a", "lets": [["a"]]}',
        '{"kind": "code", "text": "a", "lets": [["if", "1"]]}',
        '{"kind": "script", "text": "a", "lets": [["a", "1"]]}',
    ],
)
def test_remembered_data_that_is_no_target_is_none(
    here: Path, monkeypatch: pytest.MonkeyPatch, data: str
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(here))
    remember(Target("script", "train.py"))
    (file,) = here.rglob("*.json")
    file.write_text(data)
    with pytest.raises(TargetError, match="none was run in this directory before"):
        recall()


@pytest.mark.parametrize(
    ("target", "what"),
    [
        (("code", "a", (), (("a b", "1"),)), "--let cannot bind 'a b'"),
        (("code", "a", (), (("if", "1"),)), "--let cannot bind 'if'"),
        (("script", "a", (), (("a", "1"),)), "--let only works with -c"),
    ],
)
def test_parts_that_do_not_fit_together_are_refused(target: Any, what: str) -> None:
    with pytest.raises(TargetError) as caught:
        Target(*target)
    assert what in caught.value.what


@pytest.mark.parametrize(
    ("text", "what", "hint"),
    [
        ("trian.py", "can't open file '{here}/trian.py': [Errno 2] No such file", "train.py?"),
        ("os.path", "can't open file", "write -m os.path"),
        ("notes.md", "can't open file", "check the path"),
        ("no/where.py", "can't open file", "current directory"),
        ("binary.py", "binary.py is not a Python script: it holds null bytes", "source"),
        ("folder::main", "can't open file '{here}/folder': [Errno 21]", "script itself"),
        ("report.json", "report.json is a saved report", "gradscope show report.json"),
        ("report.json.gz", "report.json.gz is a saved report", "gradscope show report.json.gz"),
        ("run.jsonl", "run.jsonl is a saved report", "gradscope show run.jsonl"),
        ("config.json", "config.json is not a Python program", "script.py -- config.json"),
        # A word that is no target.
        ("", "the program to run has an empty name", ""),
        ("train.py::", "'train.py::' does not name a function in a file", ""),
        ("::loss", "'::loss' does not name a function in a file", ""),
        ("train.py::a b", "'train.py::a b' does not name a function in a file", ""),
        # A function that cannot be called.
        ("f.py::losse", "f.py has no function 'losse'", "it has: losses, loss, "),
        ("f.py::Model.bild", "f.py has no function 'Model.bild'", "it has: Model, "),
        ("f.py::number", "f.py::number is not a function but of type int", "it has: "),
        ("f.py::lots(2)", "f.py::lots: missing a required argument: 'c'", "f.py::lots(a, b, rest"),
        ("f.py::Model.forward", "missing a required argument: 'self'", "forward(self, x)"),
        ("f.py::lots(loss())", "its arguments are no literals", "lr=0.1"),
    ],
)
def test_what_cannot_run_is_named(text: str, what: str, hint: str, here: Path) -> None:
    (here / "train.py").touch()
    (here / "f.py").write_text(FUNCTIONS)
    (here / "binary.py").write_bytes(b"\x7fELF\0\0")
    (here / "folder").mkdir()
    (here / "report.json").write_text('{"format": "gradscope/1"}')
    (here / "report.json.gz").write_bytes(b"\x1f\x8b")
    (here / "run.jsonl").write_text('{"gradscope":"1","every":1}\n')
    (here / "config.json").write_text("{}")
    with pytest.raises(TargetError) as caught:
        run(parse_target(text))
    assert what.format(here=here) in caught.value.what
    assert hint in caught.value.hint and caught.value.hint
    assert caught.value.status == 2


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("3*4", 12),
        ("a = 2\nb = 3\na * b", 6),
        ("a = 2", None),
        ("'only text'", "only text"),
        ("(w := 3) + 1", 4),
        ("for i in range(3): pass", None),
        ("from __future__ import annotations\n(lambda: 7)()", 7),
        ("", None),
        ("import sys\nlist(sys.argv)", ["-c", "a", "-b"]),
    ],
)
def test_code_has_the_value_of_its_last_expression(code: str, value: object) -> None:
    ending = run(Target("code", code, ("a", "-b")))
    assert (ending.exception, ending.value, ending.status) == (None, value, 0)


def test_the_last_expression_keeps_its_place_in_the_code() -> None:
    code = (
        "import sys\n\n"
        "(1, list(sys._getframe().f_code.co_positions())[sys._getframe().f_lasti // 2])\n"
    )
    start = code.splitlines()[2].rindex("sys.")
    place = (3, 3, start, start + len("sys._getframe().f_lasti"))
    assert run(Target("code", code)).value == (1, place)


def test_names_can_be_given_to_code_beforehand() -> None:
    def give(namespace: dict[str, Any]) -> None:
        namespace["a"] = 20

    ending = run(Target("code", "b = 2\na + b"), before=give)
    assert ending.value == 22
    assert ending.namespace["b"] == 2


def test_a_syntax_error_ends_the_program_before_it_starts(here: Path) -> None:
    (here / "broken.py").write_text("print('never')\nx = = 1\n")

    def never(_: dict[str, Any]) -> None:
        raise AssertionError

    program = Program.prepare(parse_target("broken.py"))
    ending = program.run(before=never)
    assert isinstance(ending.exception, SyntaxError)
    assert ending.exception.filename == str(here / "broken.py")
    assert (ending.status, ending.namespace, program.ready.namespace) == (1, {}, {})


@pytest.mark.parametrize(
    ("name", "value"),
    [("loss", 42), ("losses", [42]), ("Model.build", "built"), ("lots(2, c=0)", 2)],
)
def test_a_function_is_called_and_its_file_is_no_script(
    name: str, value: object, here: Path
) -> None:
    (here / "functions.py").write_text(FUNCTIONS)
    ending = run(parse_target(f"functions.py::{name}"))
    assert (ending.exception, ending.value) == (None, value)
    assert ending.namespace["loaded_as"] == "functions"
    assert ending.namespace["__file__"] == str(here / "functions.py")
    assert "functions" not in sys.modules


def test_a_function_that_raises_shows_only_itself(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "functions.py").write_text(FUNCTIONS)
    run(parse_target("functions.py::fails")).show()
    shown = capsys.readouterr().err.splitlines()
    assert shown[0] == "Traceback (most recent call last):"
    assert shown[1] == f'  File "{here / "functions.py"}", line 8, in fails'
    assert shown[-1] == "ZeroDivisionError: division by zero"
    assert sum("File" in line for line in shown) == 1


def test_a_file_named_like_a_module_does_not_replace_it(here: Path) -> None:
    (here / "json.py").write_text("def f():\n    import json\n    return json.dumps(1)\n")
    assert run(parse_target("json.py::f")).value == "1"
    assert sys.modules["json"] is json


@pytest.mark.parametrize(
    "code",
    [
        "stop()",
        "try:\n    stop()\nexcept Exception:\n    pass\nraise KeyError",
        "try:\n    stop()\nexcept:\n    raise RuntimeError('turned into an error')",
        "import sys\ntry:\n    stop()\nexcept BaseException as e:\n    sys.exit(3)",
    ],
)
def test_a_stopped_program_has_ended_well(code: str) -> None:
    def stop() -> None:
        raise StopProgram

    def give(namespace: dict[str, Any]) -> None:
        namespace["stop"] = stop

    ending = run(Target("code", code), before=give)
    assert (ending.exception, ending.status) == (None, 0)


def test_an_interrupt_leaves_the_excepthook_as_it_was(capsys: pytest.CaptureFixture[str]) -> None:
    before = sys.excepthook
    with pytest.raises(KeyboardInterrupt):
        raise_interrupt()
    sys.excepthook(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert sys.excepthook is before
    assert capsys.readouterr().err == ""


def test_what_a_program_leaves_is_there_for_what_runs_after_it(here: Path) -> None:
    (here / "changes.py").write_text(
        "import sys, __main__\n"
        "assert __main__.__dict__ is globals()\n"
        "sys.path.append('mine')\nsys.argv = ['mine']\n"
    )

    def state() -> list[object]:
        return [sys.argv, list(sys.argv), sys.path, list(sys.path), sys.modules["__main__"]]

    before = state()
    with process_preserved():
        program = Program.prepare(parse_target("changes.py", ["a"]))
        assert state() == before
        ending = program.run()
        # What atexit handlers would find is what the program left.
        assert sys.argv == ["mine"] and sys.path[-1] == "mine"
        assert ending.namespace is vars(sys.modules["__main__"])
        # And nothing of ours keeps it any longer than python would.
        assert not program.ready.namespace


HOOK = """
import importlib.machinery, os, sys
os.environ["SET_BY_PROGRAM"] = "yes"

class Loader:
    def __init__(self, loader):
        self.loader = loader

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        self.loader.exec_module(module)
        if module.__name__ == "torch":
            print("hooked")

def hooked(spec):
    run = spec.loader.exec_module
    def exec_module(module):
        run(module)
        print("hooked")
    spec.loader.exec_module = exec_module
    return spec

def wrapped(spec):
    spec.loader = Loader(spec.loader)
    return spec

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name != "torch" and not EVERYTHING:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        return spec and spec.loader and MADE(spec)

sys.meta_path.insert(AT, Finder())
import torch
print("after")
del sys.meta_path[AT]
"""
"""A program with a hook of its own on the import of torch; without a watch it does the same, but
for the line "on torch"."""


def hook(made: str, at: int, everything: bool = False) -> str:
    """A program that puts a finder at a place, for torch or for every module."""
    return f"MADE = lambda spec: {made}(spec)\nAT, EVERYTHING = {at}, {everything}\n{HOOK}"


TORCH = "import os\nprint('torch', os.environ['SET_BY_PROGRAM'])\nfrom torch import part\n"
TORCH_SCRIPTS = {
    "never": ("print('no torch')", ["no torch"]),
    "once": (
        "import os\nos.environ['SET_BY_PROGRAM'] = 'yes'\nprint('before')\nimport torch\n"
        "print('after')\nimport torch, importlib, inspect\nimportlib.reload(torch)\n"
        "print(type(torch.__loader__).__name__, torch.__loader__ is torch.__spec__.loader)\n"
        "print(vars(torch.__loader__).keys(), inspect.getsource(torch).startswith('import os'))",
        [
            *["before", "torch yes", "on torch", "after", "torch yes", "SourceFileLoader True"],
            "dict_keys(['name', 'path']) True",
        ],
    ),
    "second try": (
        "import os\ntry:\n    import torch\nexcept KeyError:\n    print('failed')\n"
        "os.environ['SET_BY_PROGRAM'] = 'yes'\nimport torch",
        ["failed", "torch yes", "on torch"],
    ),
    "only looked for": (
        "import importlib.util\nprint(importlib.util.find_spec('torch').name)",
        ["torch"],
    ),
    "a hook on its loader, first": (
        hook("hooked", 0),
        ["torch yes", "on torch", "hooked", "after"],
    ),
    "a hook on its loader, last": (hook("hooked", 1), ["torch yes", "on torch", "hooked", "after"]),
    "a loader around each": (
        hook("wrapped", 0, True),
        ["torch yes", "on torch", "hooked", "after"],
    ),
    "a part first": (
        "import os\nos.environ['SET_BY_PROGRAM'] = 'yes'\nimport torch.part\nprint('after')",
        ["torch yes", "on torch", "after"],
    ),
}


def run_with_torch(place: Path, script: str, driver: str) -> subprocess.CompletedProcess[str]:
    """Run ``driver`` where ``import torch`` finds a small package of that name."""
    (place / "torch").mkdir()
    (place / "torch" / "__init__.py").write_text(TORCH)
    (place / "torch" / "part.py").touch()
    (place / "script.py").write_text(script)
    command = [sys.executable, "-c", f"from gradscope.target import *\n{driver}"]
    return ran(command, place, PYTHONPATH=str(PROJECT))


@pytest.mark.parametrize("name", TORCH_SCRIPTS)
def test_the_import_of_torch_is_reported_once_it_is_done(name: str, tmp_path: Path) -> None:
    script, printed = TORCH_SCRIPTS[name]
    done = run_with_torch(
        tmp_path,
        script,
        "import importlib._bootstrap_external as loading, sys\n"
        "finders, method = list(sys.meta_path), loading._LoaderBasics.exec_module\n"
        "ending = Program.prepare(parse_target('script.py')).run(\n"
        "    on_torch=lambda: print('on torch'))\n"
        "assert sys.meta_path == finders\n"
        "assert vars(loading._LoaderBasics)['exec_module'] is method\n"
        "ending.show()\n",
    )
    assert (done.stdout.splitlines(), done.stderr) == (printed, "")


def test_a_torch_that_is_there_already_is_reported_at_once(tmp_path: Path) -> None:
    done = run_with_torch(
        tmp_path,
        "import torch\nprint('program')",
        "import os; os.environ['SET_BY_PROGRAM'] = 'driver'\nimport torch\n"
        "Program.prepare(parse_target('script.py')).run(on_torch=lambda: print('on torch'))\n",
    )
    assert (done.stdout, done.stderr) == ("torch driver\non torch\nprogram\n", "")


def test_what_the_report_of_torch_raises_is_not_the_programs_failure(tmp_path: Path) -> None:
    done = run_with_torch(
        tmp_path,
        "import os; os.environ['SET_BY_PROGRAM'] = 'yes'\n"
        "try:\n    import torch\nexcept Exception:\n    print('swallowed')\n",
        "def report(): raise ImportError('of ours')\n"
        "try:\n    Program.prepare(parse_target('script.py')).run(on_torch=report)\n"
        "except ImportError as error:\n    print('raised', error)\n",
    )
    assert (done.stdout, done.stderr) == ("torch yes\nraised of ours\n", "")
