"""How large the interactive page is and how long it takes, on graphs of real programs: the table in
docs/page.md.

    python -m benchmarks.page       all sizes, into the docs (make bench-page)

Needs Node.js, the packages of web/ (make page) and Chromium, or another browser in CHROMIUM.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks import tables

HERE = Path(__file__).resolve().parent

SIZES = (1_000, 10_000, 100_000)
KINDS = ("transformer", "lstm")
HEAD = (
    "program",
    "nodes",
    "file",
    "bytes a node",
    "first view",
    "empty page",
    "ratio",
    "all of it",
    "longest task",
    "open a group",
    "first search",
    "next search",
)


def row(kind: str, size: int, folder: Path) -> list[str]:
    """Make one page, load it and use it."""
    page = folder / f"{kind}{size}.html"
    program = str(HERE / "page_program.py")
    command = [sys.executable, "-m", "gradscope", "backward", program, "-q", "-o", str(page)]
    subprocess.run([*command, "--", kind, str(size)], check=True)
    browser = os.environ.get("CHROMIUM") or shutil.which("chromium") or ""
    done = subprocess.run(
        ["node", str(HERE / "page.mjs"), str(page)],
        env={**os.environ, "CHROMIUM": browser},
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, float] = json.loads(done.stdout)
    total = page.stat().st_size
    data = total - empty()
    return [
        kind,
        f"{found['nodes']:,.0f}",
        f"{total / 1e3:,.0f} kB",
        f"{data / found['nodes']:.0f}",
        f"{found['first']:,.0f} ms",
        f"{found['floor']:,.0f} ms",
        f"{found['first'] / found['floor']:.1f}×",
        f"{found['whole']:,.0f} ms",
        # A browser tells of none that is shorter.
        f"{found['longest']:,.0f} ms" if found["longest"] else "< 50 ms",
        *(f"{found[name]:,.0f} ms" for name in ("expand", "search", "again")),
    ]


def empty() -> int:
    """Bytes of the viewer, which every page holds."""
    assets = HERE.parent / "gradscope" / "render" / "assets"
    return sum((assets / name).stat().st_size for name in ("viewer.js", "viewer.css"))


def main() -> None:
    """Measure, and write the table into the docs."""
    with tempfile.TemporaryDirectory() as folder:
        rows = [row(kind, size, Path(folder)) for kind in KINDS for size in SIZES]
    text = tables.table(HEAD, rows)
    tables.fill("page.md", "make bench-page", text)
    print(text)


if __name__ == "__main__":
    main()
