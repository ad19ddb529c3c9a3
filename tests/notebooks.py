"""Notebooks for tests: files as Jupyter saves them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def code(source: str, *tags: str) -> dict[str, Any]:
    """One cell of code."""
    return {**_cell("code", source, tags), "execution_count": None, "outputs": []}


def text(source: str) -> dict[str, Any]:
    """One cell that is not run."""
    return _cell("markdown", source, ())


def _cell(kind: str, source: str, tags: tuple[str, ...]) -> dict[str, Any]:
    # As Jupyter saves it: a list of lines.
    lines = source.splitlines(keepends=True)
    return {"cell_type": kind, "metadata": {"tags": list(tags)}, "source": lines}


def notebook(path: Path, *cells: str | dict[str, Any], **changes: object) -> str:
    """Write a notebook, texts being cells of code; its path."""
    about = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    content = {
        "cells": [code(cell) if isinstance(cell, str) else cell for cell in cells],
        "metadata": about,
        "nbformat": 4,
        "nbformat_minor": 5,
        **changes,
    }
    path.write_text(json.dumps(content, indent=1), "utf-8")
    return str(path)
