"""The walls of the house: who may import whom, what is exported, and what stays unloaded."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import gradscope
from gradscope.cli.output_options import FORMATS as OFFERED
from gradscope.cli.output_options import SORTABLE
from gradscope.render import FORMATS
from gradscope.render._parameters import SORTABLE as COLUMNS

PACKAGE = Path(gradscope.__file__).parent
LAYERS = {
    "errors": 0,
    "escaping": 0,
    "filesystem": 0,
    "version": 0,
    "garbage": 0,
    "plain": 0,
    "memory": 0,
    "explanation": 0,
    "notation": 0,
    "textbook": 0,
    "operands": 0,
    "observations": 0,
    "checks": 0,
    "report": 0,
    "invariants": 0,
    "answers": 0,
    "requirements": 0,
    "sums": 0,
    "storage": 0,
    "target": 1,
    "capture": 2,
    "simplify": 2,
    "compare": 2,
    "diagnose": 2,
    "reading": 3,
    "render": 4,
    "cli": 5,
    "api": 5,
    "__init__": 5,
    "__main__": 5,
}
"""A room imports from itself and from lower layers; within layer 0 from each other."""

OUTSIDERS = {
    "torch": ("capture/", "api.py"),  # api.py: for annotations only
    "click": ("cli/",),
    "rich": ("render/", "cli/"),
    "graphviz": ("render/",),
}

MODULES = sorted(PACKAGE.rglob("*.py"))


def room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(path: Path) -> set[str]:
    """Every module imported anywhere in a file, also inside functions."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            if node.module == "gradscope":
                found.discard("gradscope")
                found.update(f"gradscope.{alias.name}" for alias in node.names)
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_rooms_import_only_from_below(path: Path) -> None:
    own = room(path)
    for name in imports(path):
        if not name.startswith("gradscope."):
            continue
        other = name.split(".")[1]
        allowed = other == own or LAYERS[other] < LAYERS[own] or LAYERS[other] == LAYERS[own] == 0
        assert allowed or own in ("cli", "__init__", "__main__"), f"{own} imports {name}"


@pytest.mark.parametrize("outsider", OUTSIDERS)
def test_heavy_packages_stay_in_their_rooms(outsider: str) -> None:
    for path in MODULES:
        inside = str(path.relative_to(PACKAGE)).startswith(OUTSIDERS[outsider])
        uses = any(name.split(".")[0] == outsider for name in imports(path))
        assert inside or not uses, f"{path} imports {outsider}"


def test_no_import_cycles() -> None:
    graph = {f"gradscope.{_dotted(path)}": imports(path) for path in MODULES}
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


def _dotted(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


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


def test_the_command_line_offers_the_formats_there_are() -> None:
    assert tuple(FORMATS) == OFFERED
    assert COLUMNS == SORTABLE
    for name in FORMATS:
        assert (PACKAGE / "render" / f"{name}.py").exists()


@pytest.mark.parametrize(
    ("code", "unloaded"),
    [
        ("import gradscope", ("torch", "click", "rich", "msgspec", "graphviz")),
        ("import gradscope.cli", ("torch", "rich", "graphviz", "msgspec")),
        ("import gradscope; gradscope.load", ("torch", "click")),
        ("import gradscope.render.tree, gradscope.render.dot", ("torch", "click")),
        ("import gradscope.target", ("torch", "click", "msgspec")),
    ],
)
def test_what_is_not_needed_is_not_loaded(code: str, unloaded: tuple[str, ...]) -> None:
    check = f"{code}\nimport sys\nprint([name for name in {unloaded!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


SPEAKERS = {
    "render/output.py": "results, through the gate for terminals",
    "cli/messages.py": "errors and remarks, made visible",
    "cli/progress.py": "a line of numbers",
    "target/ending.py": "what python prints of the user's own exception",
    "cli/terminal.py": "asks what stdout is, and flushes it",
    "cli/doctor.py": "asks whether stderr is a terminal",
    "render/page.py": "a console of rich that writes into a string",
    "render/explain_page.py": "the same",
    "render/_table.py": "asks rich which colours the terminal has",
}
"""The modules that may touch a stream that a person reads, and what for; whatever else would print
must go through the first two, where what is foreign is escaped."""

STREAMS = {"stdout", "stderr", "__stdout__", "__stderr__"}
PRINTERS = {"print", "echo", "secho", "echo_via_pager", "print_exc", "print_exception", "Console"}


def test_only_the_doors_speak_to_a_person() -> None:
    speaking = {str(path.relative_to(PACKAGE)) for path in MODULES if _speaks(path)}
    assert speaking == set(SPEAKERS)


def _speaks(path: Path) -> bool:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
        owner = getattr(getattr(node, "value", None), "id", "")
        is_writer = (owner, name) in {("os", "write"), ("warnings", "warn")}
        if is_writer or name in PRINTERS or (name in STREAMS and owner == "sys"):
            return True
    return False
