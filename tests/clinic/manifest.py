"""The clinic: programs with one known disease each, their healed twins, and healthy programs.

A sick program carries two kinds of comments, which a tool never sees:

    # <- GSnnn    the guilty line: where the guilty expression starts, or, where the finding is
                  about a parameter or a layer, where that is defined
    # <~ GSnnn    a line that would be an equally right answer

`sick/NAME.py` and `cures/NAME.patch`, which heals it (see `healing.py`), belong together; a program
of several files is a folder `NAME/` with a `main.py`. Nothing here imports torch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tests.clinic.healing import SICK, healed

FOLDER = Path(__file__).resolve().parent
Kind = Literal["sick", "healed"]


@dataclass(frozen=True)
class Case:
    """A disease: the program in `sick/` has it, the healed one does not."""

    name: str
    rule: str  # its code; GS000 where the doctor does not see it
    op: str  # node without Backward0, class of a custom Function, or the python call at fault
    note: str
    source: str  # the report that inspired it, or nothing
    also: Sequence[str]  # findings that may come with it, as a consequence
    tested: Sequence[str]  # which of the two `make test` runs

    @property
    def _place(self) -> Path:
        single = SICK / f"{self.name}.py"
        return single if single.exists() else SICK / self.name

    def program(self, kind: Kind) -> Path:
        """The script to run."""
        place = self._place if kind == "sick" else healed(self._place)
        return place if place.suffix else place / "main.py"

    @property
    def files(self) -> list[Path]:
        """All files of the sick program."""
        return sorted(self._place.glob("*.py")) or [self._place]


@dataclass(frozen=True)
class Healthy:
    """A program in which nothing is wrong; `information` lists rules that may be mentioned."""

    name: str
    note: str
    information: Sequence[str]
    tested: bool  # whether `make test` runs it

    @property
    def program(self) -> Path:
        """The script to run."""
        single = FOLDER / "healthy" / f"{self.name}.py"
        return single if single.exists() else FOLDER / "healthy" / self.name / "main.py"


def _rows(heading: str) -> Iterator[list[str]]:
    """The cells of each program in the table below a heading of ``programs.md``."""
    _, _, text = (FOLDER / "programs.md").read_text("utf-8").partition(f"\n## {heading}\n")
    for line in text.partition("\n## ")[0].splitlines():
        if line.startswith("| `"):
            yield [cell.strip(" `") for cell in line.split("|")[1:-1]]


CASES = tuple(
    Case(name, rule, op, note, source, also.split(), tested.split())
    for name, rule, op, note, source, also, tested in _rows("Sick")
)
HEALTHY = tuple(
    Healthy(name, note, information.split(), bool(tested))
    for name, note, information, tested in _rows("Healthy")
)


def marked_lines(path: Path, arrow: Literal["<-", "<~"]) -> list[int]:
    """The numbers of the lines of one file that carry a marker."""
    lines = path.read_text(encoding="utf-8").splitlines()
    marker = re.compile(rf"# {arrow} GS\d\d\d\b")
    return [number for number, line in enumerate(lines, 1) if marker.search(line)]


def guilty_line(path: Path) -> int:
    """The line of the marker `# <- GSnnn` in a file; 0 where it has none."""
    found = marked_lines(path, "<-")
    if len(found) > 1:
        raise ValueError(f"{path} has {len(found)} guilty lines")
    return found[0] if found else 0


def guilty_place(case: Case) -> tuple[str, int]:
    """The file name and the line that a finding about this case must name."""
    for path in case.files:
        if line := guilty_line(path):
            return str(path), line
    raise ValueError(f"{case.name} has no marker")


def right_places(case: Case) -> set[tuple[str, int]]:
    """Every place that counts as right: the guilty one and those marked as equally right."""
    places = {guilty_place(case)}
    for path in case.files:
        places.update((str(path), line) for line in marked_lines(path, "<~"))
    return places
