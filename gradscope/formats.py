"""The formats there are, each declared once.

A new format is a module in ``render/formats/`` and its line in :data:`FORMATS`; a new way to tell
a command's own answer is a module in ``render/answers/`` and its name in :data:`ANSWERS`.  Imports
nothing, because ``gradscope --help`` names them all and a renderer costs more than the rest of it.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args


class Format(NamedTuple):
    """What is known of a format before its module is imported.

    ``suffixes`` of files choose it.  ``is_text``: a person reads it on a terminal.  ``is_list``: it
    lists parameters, takes ``--sort``, and the run counts the zeros of gradients for it.
    ``is_binary``: no terminal shows it.
    """

    suffixes: tuple[str, ...] = ()
    is_text: bool = False
    is_list: bool = False
    is_binary: bool = False


FORMATS = {
    "tree": Format((".txt",), is_text=True),
    "code": Format(is_text=True),
    "table": Format(is_text=True, is_list=True),
    "csv": Format((".csv",), is_list=True),
    "json": Format((".json",)),
    "dot": Format((".dot", ".gv")),
    "svg": Format((".svg",)),
    "png": Format((".png",), is_binary=True),
    "pdf": Format((".pdf",), is_binary=True),
    "html": Format((".html", ".htm")),
    "markdown": Format((".md",), is_text=True),
}
"""Every format of a graph, by its word after ``--format``, which is also its module's name."""

SAVED = (".json", ".json.gz")
"""How the names of saved reports end."""

MAX_SIZE = 2**30
"""Bytes of JSON, unpacked, that are read unless somebody asks for more.  A graph of a million nodes
takes 200 to 400 MB with its gradients; in memory a report is about seven times as large."""

SEVERAL_GRAPHS = ("json", "html")
"""Those that hold all graphs of a report; the others draw one."""

TEXTS = tuple(name for name, format in FORMATS.items() if format.is_text)
LISTS = tuple(name for name, format in FORMATS.items() if format.is_list)
BINARIES = tuple(name for name, format in FORMATS.items() if format.is_binary)

DRAWINGS = tuple(name for name in FORMATS if name not in (*TEXTS, *LISTS))
"""Those that hold a graph, also of a command that tells more in a text of its own."""

ANSWERS = {
    "graph": {"text": "tree"},
    "explain": {"text": "explain", "html": "text_page"},
    "doctor": {"text": "tree", "markdown": "diagnosis"},
    "terms": {"text": "split"},
    "split": {"text": "split", "markdown": "split"},
    "depends": {"text": "depends", "markdown": "depends"},
    "memory": {"text": "memory"},
    "check": {"text": "checks"},
    "watch": {"text": "training", "html": "text_page"},
    "diff": {"text": "difference", "markdown": "difference", "json": "difference_json"},
}
"""What shows the answer of a command, by its word after ``--format``: ``text``, which is its
default, and formats that it writes in its own way."""

PICTURES = ("dot", "svg", "png", "pdf")

WORDS_ALONE = {"depends": (*PICTURES, "csv")}
"""Of a command whose answer is in words and numbers alone, the formats without a place for it."""

DIAGNOSES = ("text", "code", "json", "github", "gcc")
"""How the doctor tells its findings."""

Column = Literal["name", "shape", "dtype", "weight", "gradient", "ratio", "zeros", "nonfinite"]
"""A column of the formats that list parameters, by which they can be ordered."""

SORTABLE: tuple[Column, ...] = get_args(Column)
