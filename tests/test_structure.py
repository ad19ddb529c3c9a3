"""The walls of the house: who may import whom, what is exported, and what stays unloaded."""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

import gradscope
from gradscope.formats import ANSWERS, DIAGNOSES, FORMATS, SORTABLE
from gradscope.render.answers import diagnosis
from gradscope.render.drawing.parameters import Parameter
from tests.fuzz.process import ran

PACKAGE = Path(gradscope.__file__).parent
ROOMS = {
    # What every room may use.
    "words": "",
    "walks": "",
    "escaping": "",
    "errors": "words escaping",
    "formats": "",
    "filesystem": "",
    "handlers": "",
    "patched": "",
    "doing": "",
    # The wall: plain data.
    "model": "words errors escaping formats",
    "notation": "",
    # Left of it: the program runs, torch is alive.
    "target": "patched words errors filesystem",
    "autograd": "patched handlers errors filesystem model",
    "recording": "patched handlers words errors filesystem model target autograd",
    "graphing": "doing handlers words errors escaping model autograd recording",
    "derivatives": "handlers words errors filesystem model autograd",
    "ranks": "patched words errors model target",
    "options": "formats ranks",
    "analyses": "",
    "analyses/training": "patched walks model autograd recording",
    "analyses/doctor": "patched handlers walks words errors escaping model target autograd "
    "recording graphing derivatives ranks analyses/training",
    "analyses/check": "doing handlers words errors model notation autograd recording graphing "
    "derivatives",
    "analyses/explain": "doing handlers words errors escaping model notation autograd recording "
    "graphing derivatives",
    "analyses/split": "words errors handlers model autograd graphing analyses/explain",
    "analyses/depends": "words errors model autograd graphing analyses/explain analyses/split",
    "analyses/memory": "words errors model autograd recording graphing",
    "running": "patched doing handlers words errors escaping filesystem model target "
    "autograd recording graphing ranks analyses/doctor",
    # Right of it: from a report to words and pictures.
    "analyses/diff": "model",
    "rules": "handlers walks words errors escaping filesystem model",
    "simplify": "words errors model walks",
    "render/options": "formats simplify",
    "render/output": "errors escaping model",
    "render/words": "words escaping filesystem model render/options",
    "render/drawing": "words errors escaping model notation simplify analyses/diff "
    "render/options render/words",
    "render/formats": "words errors escaping model simplify render/options render/words "
    "render/drawing",
    "render/answers": "words errors escaping filesystem model notation rules simplify "
    "analyses/diff render/options render/words render/drawing render/formats",
    "render": "words errors formats model analyses/diff render/options render/output "
    "render/words render/drawing",
    "render/notebook": "errors escaping formats model render render/options render/words "
    "render/drawing",
    "watching": "patched handlers words errors filesystem model target autograd recording graphing "
    "ranks running rules render",
    # The doors.
    "api": "options words errors escaping formats filesystem model target recording graphing "
    "analyses/doctor analyses/check analyses/explain analyses/split analyses/memory running "
    "analyses/diff rules simplify render/options render/words render/drawing render "
    "render/notebook watching",
    "testing": "words errors rules running api",
    "cli": "*",
    "ipython": "api errors target cli model render/options render/notebook",
    "__init__": "words api errors ipython",
    "__main__": "cli",
}
"""Every room of the house, in the order in which data goes through it, and the rooms that it may
import: none that comes after it.  Modules directly in ``render`` are rooms of their own."""

UNMENTIONED = {
    *("doing", "handlers", "walks", "__init__", "__main__"),
    *("analyses", "render", "options", "output"),
}
"""Rooms that the tour need not name: one small thing each, or the house of others."""

LARGEST = 1 / 5
"""Of all lines, that a room may have."""

OUTSIDERS = {
    "torch": (
        *("autograd/", "recording/", "graphing/", "derivatives/", "running/", "watching/"),
        *("analyses/training/", "analyses/doctor/", "analyses/check/", "analyses/explain/"),
        *("analyses/split/", "analyses/depends/", "analyses/memory/"),
        *("api/", "testing/"),  # these two: for annotations only
    ),
    "click": ("cli/",),
    "rich": ("render/", "cli/"),
    "graphviz": ("render/",),
    "IPython": ("target/shell.py", "ipython.py"),
}

MODULES = sorted(PACKAGE.rglob("*.py"))


def _dotted(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


BY_NAME = {f"gradscope.{_dotted(path)}".removesuffix("."): path for path in MODULES}


def room(path: Path) -> str:
    """The room a module is in."""
    top, *rest = path.relative_to(PACKAGE).with_suffix("").parts
    if top not in ("analyses", "render") or rest in ([], ["__init__"]):
        return top
    return f"{top}/{rest[0]}"


@dataclass(frozen=True)
class Facts:
    """What the walls ask of a file."""

    imports: set[str]
    classes: list[str]
    speaks: bool


@cache
def facts(path: Path) -> Facts:
    """Those of one file, which is parsed once."""
    nodes = list(ast.walk(ast.parse(path.read_text("utf-8"))))
    classes = [node.name for node in nodes if isinstance(node, ast.ClassDef)]
    return Facts(_imports(nodes), classes, any(map(_speaks, nodes)))


def _imports(nodes: list[ast.AST]) -> set[str]:
    """Every module imported anywhere in a file, also inside functions."""
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            inside = {f"{node.module}.{alias.name}" for alias in node.names} & set(BY_NAME)
            found |= inside
            if len(inside) < len(node.names):
                found.add(node.module)
    return found


def test_every_room_is_on_the_plan_in_order() -> None:
    assert {room(path) for path in MODULES} == set(ROOMS)
    before: list[str] = []
    for name, needed in ROOMS.items():
        assert set(needed.split()) - {"*"} <= set(before), name
        before.append(name)


def test_rooms_import_only_what_the_plan_allows() -> None:
    for path in MODULES:
        own = room(path)
        for name in facts(path).imports & set(BY_NAME):
            other = room(BY_NAME[name])
            is_allowed = other == own or other in ROOMS[own].split() or ROOMS[own] == "*"
            assert is_allowed, f"{path.relative_to(PACKAGE)} imports {name}"


def test_the_tour_goes_through_every_room() -> None:
    tour = (PACKAGE.parent / "docs" / "architecture.md").read_text("utf-8")
    rooms = tour[tour.index("## The rooms") : tour.index("## One command")]
    for name in {name.split("/")[-1] for name in ROOMS} - UNMENTIONED:
        assert re.search(rf"`(\w+/)*{name}(/|\.py)?`", rooms), name


def test_no_room_is_a_hall() -> None:
    lines: Counter[str] = Counter()
    for path in MODULES:
        lines[room(path)] += len(path.read_text("utf-8").splitlines())
    (largest, most), *_ = lines.most_common()
    assert most <= LARGEST * lines.total(), f"{largest} has {most} of {lines.total()} lines"


def test_no_module_stands_where_a_public_function_does() -> None:
    """``import gradscope.backward`` would put a module in the place of the function."""
    tops = {path.relative_to(PACKAGE).parts[0].removesuffix(".py") for path in MODULES}
    commands = ("trace", "backward", "explain", "doctor", "check", "memory")
    assert not tops & {*gradscope.__all__, *commands, "show", "diff", "watch"}


@pytest.mark.parametrize("outsider", OUTSIDERS)
def test_heavy_packages_stay_in_their_rooms(outsider: str) -> None:
    for path in MODULES:
        inside = str(path.relative_to(PACKAGE)).startswith(OUTSIDERS[outsider])
        uses = any(name.split(".")[0] == outsider for name in facts(path).imports)
        assert inside or not uses, f"{path} imports {outsider}"


def test_no_import_cycles() -> None:
    graph = {name: facts(path).imports for name, path in BY_NAME.items()}
    done: set[str] = set()
    while True:
        free = {
            name
            for name, needs in graph.items()
            if name not in done and not _left(needs, graph, done, name)
        }
        if not free:
            break
        done |= free
    assert set(graph) == done, f"in a cycle: {sorted(set(graph) - done)}"


def _left(needs: set[str], graph: dict[str, set[str]], done: set[str], name: str) -> set[str]:
    # A package and its own modules name each other; that is not a cycle between rooms.
    return {
        need
        for need in needs
        if need in graph and need not in done and not name.startswith(f"{need}.") and need != name
    }


def test_what_is_exported_is_what_is_there() -> None:
    assert sorted(gradscope.__all__) == list(gradscope.__all__)
    assert all(getattr(gradscope, name) is not None for name in gradscope.__all__)
    assert {*gradscope.__all__} <= {*dir(gradscope)}  # also what is loaded late


def test_every_renderer_is_declared() -> None:
    own = {name for answer in ANSWERS.values() for name in answer.values()} - set(FORMATS)
    for folder, table, declared in (
        ("formats", "FORMATS", set(FORMATS)),
        ("answers", "ANSWERS", own),
    ):
        modules = (PACKAGE / "render" / folder).glob("*.py")
        there = {path.stem for path in modules if _renders(path)}
        where = f"gradscope/formats.py: {table}"
        assert not there - declared, f"no line in {where}, for modules of render/{folder}"
        assert not declared - there, f"in {where}, without a render() in render/{folder}"
    assert tuple(diagnosis.FORMATS) == DIAGNOSES, "diagnosis.py and gradscope/formats.py differ"
    assert set(SORTABLE) < set(Parameter._fields), "a Column that drawing/parameters.py has not"


def _renders(path: Path) -> bool:
    return (
        re.search(r"^(def render\(|render = )", path.read_text("utf-8"), re.MULTILINE) is not None
    )


@pytest.mark.parametrize(
    ("code", "unloaded"),
    [
        ("import gradscope", ("torch", "click", "rich", "msgspec", "graphviz")),
        ("import gradscope.cli", ("torch", "rich", "graphviz", "msgspec", "IPython")),
        ("import gradscope; gradscope.load", ("torch", "click")),
        ("import gradscope.render.formats.tree, gradscope.render.formats.dot", ("torch", "click")),
        ("import gradscope.target", ("torch", "click", "msgspec", "IPython")),
    ],
)
def test_what_is_not_needed_is_not_loaded(code: str, unloaded: tuple[str, ...]) -> None:
    check = f"{code}\nimport sys\nprint([name for name in {unloaded!r} if name in sys.modules])"
    done = ran([sys.executable, "-c", check])
    assert done.stdout.strip() == "[]"


SMALL = "import torch; x = torch.ones(3, requires_grad=True); (x * 2).sum().backward()"


COUNT = """
import atexit, os, sys, torch
for command in ("backward", "doctor"):
    if not os.fork():
        atexit.register(lambda: print(sorted(n for n in sys.modules if n[:9] == "gradscope")))
        sys.argv[1:] = [command, "-q", "small.py"]
        from gradscope.cli import entry
        entry()
    os.wait()
"""


def test_a_program_of_three_nodes_enters_few_modules(tmp_path: Path) -> None:
    (tmp_path / "small.py").write_text(SMALL)
    done = ran([sys.executable, "-c", COUNT], tmp_path)
    lines = [line for line in done.stdout.splitlines() if line.startswith("[")]
    backward, doctor = map(ast.literal_eval, lines)
    assert 0 < len(backward) <= 90, backward
    assert 0 < len(doctor) <= 150, doctor


def test_no_class_name_stands_twice() -> None:
    """One word, one meaning; but for what the API shows of a Report."""
    where: dict[str, list[str]] = {}
    for name, path in BY_NAME.items():
        for one in facts(path).classes:
            where.setdefault(one, []).append(name)
    twice = {name: rooms for name, rooms in where.items() if len(rooms) > 1}
    assert twice == {"Report": ["gradscope.api.report", "gradscope.model.report"]}


SPEAKERS = {
    "render/output.py": "results, through the gate for terminals",
    "cli/terminal.py": "errors, remarks and what is waited for, made visible; asks what the "
    "streams are, and flushes them; a pager for our own pages",
    "target/ending.py": "what python prints of the user's own exception",
    "target/shell.py": "what IPython prints of it",
    "api/watching.py": "what a watched training could not do, made visible",
    "render/words/page.py": "a console of rich that writes into a string",
    "render/words/table.py": "asks rich which colours the terminal has",
}
"""The modules that may touch a stream that a person reads, and what for; whatever else would print
must go through the first two, where what is foreign is escaped."""

STREAMS = {"stdout", "stderr", "__stdout__", "__stderr__"}
PRINTERS = {"print", "echo", "secho", "echo_via_pager", "print_exc", "print_exception", "Console"}


def test_only_the_doors_speak_to_a_person() -> None:
    speaking = {str(path.relative_to(PACKAGE)) for path in MODULES if facts(path).speaks}
    assert speaking == set(SPEAKERS)


def _speaks(node: ast.AST) -> bool:
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    owner = getattr(getattr(node, "value", None), "id", "")
    is_writer = (owner, name) in {("os", "write"), ("warnings", "warn")}
    return is_writer or name in PRINTERS or (name in STREAMS and owner == "sys")
