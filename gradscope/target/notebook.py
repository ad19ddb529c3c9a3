"""Reads notebooks: which cells run, in which order.

Knows the file format (https://nbformat.readthedocs.io/en/latest/format_description.html), and
nothing of running.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal

import msgspec

from gradscope.errors import TargetError
from gradscope.words import first_line

_SKIPPED, _MAY_RAISE = "skip-execution", "raises-exception"
"""Tags of cells: https://nbclient.readthedocs.io/en/latest/client.html."""


@dataclass(frozen=True)
class Cell:
    """Code of one cell; the run goes on after an error where ``may_raise``."""

    source: str
    may_raise: bool


class _Metadata(msgspec.Struct):
    tags: list[str] = []


class _Cell(msgspec.Struct):
    cell_type: str
    source: str | list[str]
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)

    @property
    def text(self) -> str:
        return self.source if isinstance(self.source, str) else "".join(self.source)


class _About(msgspec.Struct):
    kernelspec: dict[str, object] = {}
    language_info: dict[str, object] = {}


class _Notebook(msgspec.Struct):
    nbformat: Literal[4]
    cells: list[_Cell]
    metadata: _About = msgspec.field(default_factory=_About)


def read_cells(content: bytes, name: str) -> list[Cell]:
    """The cells of a notebook that run, in order.

    Args:
        content: of the file.
        name: the file as the user typed it, for messages.

    Raises:
        TargetError: it is no notebook, one of another format or language, or has no code.
    """
    notebook = _decoded(content, name)
    about = notebook.metadata
    language = str(about.language_info.get("name") or about.kernelspec.get("language") or "")
    if language.lower() not in ("", "python", "ipython"):
        what = f"{name} is a notebook of {language}, not of Python"
        raise TargetError(what, "gradscope runs PyTorch programs; give a notebook of Python")
    code = [cell for cell in notebook.cells if cell.cell_type == "code" and cell.text.strip()]
    kept = [cell for cell in code if _SKIPPED not in cell.metadata.tags]
    if not kept:
        skipped = f": every one is tagged {_SKIPPED}" if code else ""
        what = f"{name} has no cell of code to run{skipped}"
        raise TargetError(what, "give a notebook that computes something")
    return [Cell(cell.text, _MAY_RAISE in cell.metadata.tags) for cell in kept]


def _decoded(content: bytes, name: str) -> _Notebook:
    try:
        # Not by msgspec: outputs may hold a NaN, which python writes, though it is no JSON.
        return msgspec.convert(json.loads(content), _Notebook)
    except (ValueError, RecursionError) as error:
        what = f"{name} is not a notebook of nbformat 4: {first_line(str(error))}"
        convert = f"jupyter nbconvert --to notebook --inplace {name}"
        raise TargetError(what, f"give one as Jupyter saves it; an older one: {convert}") from None
