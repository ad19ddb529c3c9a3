"""The same program under python and as a target: same output, same traceback, same exit status."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import gradscope.target
from tests.fuzz.process import ran
from tests.looking import Done

PROJECT = Path(gradscope.target.__file__).parents[2]

# What the command line does with a target, without the command line.
DRIVER = """
import sys
from gradscope.errors import TargetError
from gradscope.target import Program, Target

kind, text, *arguments = sys.argv[1:]
try:
    ending = Program.prepare(Target(kind, text, tuple(arguments))).run()
except TargetError as error:
    print(f"{sys.executable}: {error.what}", file=sys.stderr)
    sys.exit(error.status)
ending.show()
ending.finish()
"""

PROGRAMS = {
    "environment": """
import pickle, sys
print(sys.argv, sys.path[0], sys.stdin.read(), "runpy" in sys.modules)
addressed = ("__loader__", "__spec__")
print([(n, repr(value)) for n, value in list(globals().items()) if n not in addressed])
print(__spec__ and (__spec__.name, __spec__.origin, __spec__.cached, __spec__.parent))
print(type(__loader__), getattr(__loader__, "path", None), getattr(__loader__, "name", None))
class Kept: pass
print(pickle.loads(pickle.dumps(Kept())).__class__ is sys.modules["__main__"].Kept)
""",
    "exit 3": "import sys; sys.exit(3)",
    "exit bye": "import sys; sys.exit('bye')",
    "exit tuple": "raise SystemExit((1, 2))",
    "exit without stderr": "import sys; sys.stderr = None; sys.exit('bye')",
    "syntax error": "x = (1,\ny = 2\n",
    "syntax error of the compiler": "x = 1\nreturn x\n",
    "interrupt": "import atexit; atexit.register(print, 'atexit'); raise KeyboardInterrupt",
    "interrupt subclass": "class K(KeyboardInterrupt): pass\nraise K",
    "raise while handling": "try:\n    1 / 0\nexcept Exception:\n    raise ValueError('x')\n",
    "exception group": """
def f(): raise KeyError(3)
try:
    f()
except KeyError as e:
    e.add_note("noted")
    raise ExceptionGroup("all", [e, ValueError(2)])
""",
    "unchangeable exception": """
import dataclasses
@dataclasses.dataclass(frozen=True)
class Frozen(Exception):
    a: int
raise Frozen(3)
""",
    "import with syntax error": "import broken_module\n",
    "failing excepthook": """
import sys
def hook(*args): raise RuntimeError("in hook")
sys.excepthook = hook
1 / 0
""",
    "exiting excepthook": "import sys\nsys.excepthook = lambda *_: sys.exit('seven')\n1 / 0\n",
    "last traceback": """
import atexit, sys
atexit.register(lambda: print(sys.last_type, sys.last_value, sys.last_traceback.tb_lineno))
1 / 0
""",
    "warnings": """
import warnings
def f(): warnings.warn("x", stacklevel=2)
f()
warnings.warn("d", DeprecationWarning)
print(1 is 1)
""",
    "future": "from __future__ import annotations\ndef f(a: B): pass\nprint(f.__annotations__)\n",
    "value at the end": "x = 3\ndef f():\n    raise KeyError(x)\nx + f() * 2\n",
    "own source": """
import inspect
def f():
    pass
try:
    print(inspect.getsource(f))
except OSError as error:
    print(error)
""",
    "empty": "",
}
WAYS = ("script", "module", "code", "stdin")
RECURSION = "def f(n):\n    return f(n + 1)\nf(0)\n"


def outcome(
    words: list[str], directory: Path, stdin: str = "", flags: tuple[str, ...] = ()
) -> Done:
    """Run python with ``words``."""
    command, path = [sys.executable, *flags, *words], str(PROJECT)
    done = ran(command, directory, stdin=stdin, PYTHONPATH=path, PYTHONSAFEPATH="")
    return Done(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A place with a few modules in it, and the driver outside of it."""
    (tmp_path / "driver.py").write_text(DRIVER)
    folder = tmp_path / "place"
    (folder / "package").mkdir(parents=True)
    (folder / "broken_module.py").write_text("x = = 1\n")
    (folder / "package" / "__init__.py").write_text("import sys\nprint(sys.argv)\n")
    (folder / "package" / "__main__.py").write_text(
        PROGRAMS["environment"] + "from . import other\n1 / 0\n"
    )
    (folder / "package" / "other.py").write_text("print(__name__)\n")
    (folder / "failing").mkdir()
    (folder / "failing" / "__init__.py").write_text("1 / 0\n")
    (folder / "failing" / "module.py").touch()
    (folder / "no_main").mkdir()
    return folder


def assert_same(
    python: list[str], target: list[str], folder: Path, stdin: str = "", flags: tuple[str, ...] = ()
) -> Done:
    """Run both ways and compare everything."""
    plain = outcome(python, folder, stdin, flags)
    watched = outcome([str(folder.parent / "driver.py"), *target], folder, stdin, flags)
    assert watched == plain
    return plain


@pytest.mark.parametrize(
    ("name", "way"),
    [
        (name, way)
        for at, name in enumerate(PROGRAMS)
        # Of one program the second way besides the first, of the next the third and so on.
        for way in (WAYS if name == "environment" else ("script", WAYS[1 + at % 3]))
    ],
)
def test_a_program_does_what_it_does_under_python(name: str, way: str, folder: Path) -> None:
    source = PROGRAMS[name]
    (folder / "program.py").write_text(source)
    python, target, stdin = {
        "script": (["program.py"], ["script", "program.py"], "typed"),
        "module": (["-m", "program"], ["module", "program"], "typed"),
        "code": (["-c", source], ["code", source], "typed"),
        "stdin": (["-"], ["stdin", "-"], source),
    }[way]
    assert_same([*python, "a", "-b"], [*target, "a", "-b"], folder, stdin)


def depth(ended: Done) -> int:
    """How often a program has called itself, by its traceback."""
    found = re.search(r"repeated (\d+) more times", ended.err)
    assert found, ended.err
    return int(found[1])


@pytest.mark.parametrize("way", ["script", "code", "stdin"])
def test_recursion_ends_at_about_the_same_depth(way: str, folder: Path) -> None:
    (folder / "program.py").write_text(RECURSION)
    python, target = {
        "script": (["program.py"], ["script", "program.py"]),
        "code": (["-c", RECURSION], ["code", RECURSION]),
        "stdin": (["-"], ["stdin", "-"]),
    }[way]
    plain = depth(outcome(python, folder, RECURSION))
    watched = depth(outcome([str(folder.parent / "driver.py"), *target], folder, RECURSION))
    assert plain <= watched < plain + 5


@pytest.mark.parametrize("flags", [(), ("-P",)])
@pytest.mark.parametrize("path", ["deep/s.py", "./deep/../deep/s.py", "link.py", "{}/deep/s.py"])
def test_a_path_means_what_it_means_to_python(
    path: str, flags: tuple[str, ...], folder: Path
) -> None:
    (folder / "deep").mkdir()
    (folder / "deep" / "s.py").write_text(PROGRAMS["environment"])
    (folder / "link.py").symlink_to(Path("deep", "s.py"))
    path = path.format(folder)
    assert_same([path, "a"], ["script", path, "a"], folder, "typed", flags)


@pytest.mark.parametrize("name", ["package", "package.other", "failing.module"])
def test_a_module_in_a_package_runs_as_python_runs_it(name: str, folder: Path) -> None:
    assert_same(["-m", name, "a"], ["module", name, "a"], folder)


@pytest.mark.parametrize("name", ["nowhere", "no_main", "package.nowhere", "os.path.nowhere"])
def test_a_missing_module_is_named_as_python_names_it(name: str, folder: Path) -> None:
    plain = outcome(["-m", name], folder)
    watched = outcome([str(folder.parent / "driver.py"), "module", name], folder)
    # Python exits with 1 here; a target that does not exist is a mistake in usage to us.
    assert (watched.status, watched.out, watched.err) == (2, plain.out, plain.err)


@pytest.mark.parametrize("path", ["nowhere.py", "./nowhere.py", "no/where.py"])
def test_a_missing_script_is_reported_as_python_reports_it(path: str, folder: Path) -> None:
    assert assert_same([path], ["script", path], folder).status == 2


@pytest.mark.parametrize(
    "source",
    [
        b'# coding: latin-1\nprint("\xe9")\nraise ValueError("\xe9")\n',
        b'\xef\xbb\xbfprint("\xc3\xa9")\n1 / 0\n',
        b"x = 1\r\ny = = 2\r\n",
    ],
)
def test_encodings_are_read_as_python_reads_them(source: bytes, folder: Path) -> None:
    (folder / "program.py").write_bytes(source)
    assert_same(["program.py"], ["script", "program.py"], folder)


def test_child_processes_find_the_program(folder: Path) -> None:
    (folder / "program.py").write_text(
        "import multiprocessing\n"
        "def double(x): return 2 * x\n"
        "if __name__ == '__main__':\n"
        "    with multiprocessing.get_context('spawn').Pool(1) as pool:\n"
        "        print(pool.map(double, [1, 2]))\n"
    )
    assert "[2, 4]" in assert_same(["program.py"], ["script", "program.py"], folder).out
