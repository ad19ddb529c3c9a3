"""The sdist and the wheel that is built out of it, installed and used: ``make dist-check``.

What is installed comes from the index as a user's would, under constraints.txt.  Only torch and
what it needs are linked from the environment of this process: each copy would take a minute.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
import venv
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml
from packaging.requirements import Requirement

from gradscope.words import VERSION

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = [
    name
    for name in PROJECT["optional-dependencies"]
    if name not in ("dev", "bench", "models", "site")
]
"""The extras for users; the others are for who develops gradscope."""

NONE: Mapping[str, str] = {}
SICK = "import torch\nw = torch.zeros(3, requires_grad=True)\nw.sqrt().sum().backward()\n"
GRAPH = ("-c", "log(x) * y", "--let", "x=[1,2]", "--let", "y=[3,4]")


def closure(names: Iterable[str]) -> set[str]:
    """Distributions of this environment, and all that they need here."""
    found, waiting = set[str](), [*names]
    while waiting:
        name = waiting.pop()
        try:
            known = distribution(name)
        except PackageNotFoundError:  # for another system, or another version of python
            continue
        if known.name not in found:
            found.add(known.name)
            needed = map(Requirement, known.requires or ())
            waiting += [
                one.name for one in needed if not one.marker or one.marker.evaluate({"extra": ""})
            ]
    return found


def link(names: Iterable[str], folder: Path) -> None:
    """Make distributions of this environment importable from a folder."""
    folder.mkdir()
    for name in names:
        for file in distribution(name).files or ():
            top = file.parts[0]
            there = Path(str(file.locate())).parents[len(file.parts) - 1] / top
            if top not in ("..", "__pycache__") and not (folder / top).exists():
                (folder / top).symlink_to(there)


@dataclass(frozen=True)
class Environment:
    """A virtual environment of its own, in which nothing but ``linked`` is installed."""

    folder: Path
    linked: Path

    def make(self) -> None:
        """Create it."""
        venv.create(self.folder, symlinks=True)
        (packages,) = self.folder.glob("lib/python*/site-packages")
        (packages / "linked.pth").write_text(f"{self.linked}\n")

    def install(self, *what: str, variables: Mapping[str, str] = NONE) -> None:
        """As a user would, by the pip of this process."""
        pip = (sys.executable, "-m", "pip", "--python", str(self.folder / "bin" / "python"))
        _run([*pip, "install", "--quiet", *what], variables=variables)
        _run([*pip, "check"])

    def shell(self, line: str, status: int = 0) -> str:
        """What a command prints, in an empty folder, with no Graphviz on the path."""
        with TemporaryDirectory() as here:
            Path(here, "train.py").write_text(SICK)
            path = f"{self.folder / 'bin'}{os.pathsep}{self.linked.parent / 'tools'}"
            return _run(["/bin/sh", "-c", line], status, here, {"PATH": path})


def _run(
    words: list[str], status: int = 0, cwd: str | None = None, variables: Mapping[str, str] = NONE
) -> str:
    # Nothing of this checkout is to be found by accident.
    known = {key: value for key, value in os.environ.items() if not key.startswith("PYTHONPATH")}
    done = subprocess.run(
        words, cwd=cwd, env={**known, **variables}, capture_output=True, text=True
    )
    if done.returncode != status:
        raise SystemExit(f"{' '.join(words)}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def use(one: Environment, draws: bool) -> None:
    """The commands that need what is easily left out of a package."""
    assert one.shell("gradscope --version") == f"gradscope, version {VERSION}\n"
    words = " ".join(f"'{word}'" for word in GRAPH)
    saved = f"'{one.folder / 'saved.json'}'"
    one.shell(f"gradscope backward {words} --gradient ones -o {saved}")
    assert "torch" not in one.shell(f"gradscope show {saved}").splitlines()[0]
    assert "## How it is recognised" in one.shell("gradscope rule GS102")
    assert "<script" in one.shell(f"gradscope show {saved} -o - --format html")
    # Pictures need Graphviz, which one of the extras brings along.
    drawn = one.shell(f"gradscope show {saved} -o - --format svg", 0 if draws else 3)
    assert ("</svg>" in drawn) is draws


def follow_the_docs(one: Environment, built: Path) -> None:
    """The shell lines of the workflow in docs/ci.md, as they stand there."""
    page = (ROOT / "docs" / "ci.md").read_text("utf-8")
    (workflow, *_) = re.findall(r"^```yaml\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    steps = yaml.safe_load(workflow)["jobs"]["doctor"]["steps"]
    install, look = (step["run"] for step in steps if "run" in step)
    assert install.startswith("pip install ./gradscope")
    # From what was built here and nowhere else: the name may be another's on an index.
    here = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(built)}
    one.install("gradscope-torch", variables=here)
    found = one.shell(look, 1)
    assert "title=GS102" in found


def read_the_description(wheel: Path) -> None:
    """The long description: whole, and without links to files that an index has not."""
    with zipfile.ZipFile(wheel) as inside:
        (name,) = (one for one in inside.namelist() if one.endswith(".dist-info/METADATA"))
        text = inside.read(name).decode()
    assert "Classifier: Typing :: Typed" in text
    assert "## When a gradient is NaN, None, zero or wrong" in text
    links = re.findall(r"\]\(([^)\s]*)\)", text)
    assert all(link.startswith("https://") for link in links), links


def main() -> None:
    """Build, install, use."""
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        built, tools = folder / "built", folder / "tools"
        _run([sys.executable, "-m", "build", "--quiet", "--outdir", str(built), str(ROOT)])
        (wheel,) = built.glob("*.whl")
        read_the_description(wheel)
        tools.mkdir()
        for tool in ("cat", "rm", "uname"):
            (tools / tool).symlink_to(f"/bin/{tool}")
        link(closure(["torch"]), folder / "torch")

        one = Environment(folder / "used", folder / "torch")
        one.make()
        for at, extra in enumerate(("", *EXTRAS)):
            named = f"[{extra}]" if extra else ""
            constraints = ("-c", str(ROOT / "constraints.txt"))
            one.install(*constraints, f"{PROJECT['name']}{named} @ {wheel.as_uri()}")
            use(one, "dot" in EXTRAS[:at])
            print(f"{wheel.name}{named}: installed and used", flush=True)
        link(closure(Requirement(need).name for need in PROJECT["dependencies"]), folder / "needed")
        one = Environment(folder / "workflow", folder / "needed")
        one.make()
        follow_the_docs(one, built)
        print("docs/ci.md: the workflow's lines do what they say")


if __name__ == "__main__":
    main()
