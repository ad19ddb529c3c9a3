"""The pages of the site: docs/ with the pages at the top, so that every link stays inside.

``make site`` writes them into ``build/pages`` and has the builder refuse broken links."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "CHANGELOG.md": "CHANGELOG.md",
    "examples/README.md": "examples/README.md",
    **{
        path.relative_to(ROOT).as_posix(): path.relative_to(ROOT / "docs").as_posix()
        for path in sorted((ROOT / "docs").rglob("*"))
        if path.is_file()
    },
}
"""Every page and picture in the repository, and where it stands on the site."""

_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s#]*)(#[^)\s]*)?\)")
_FENCE = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)


def moved(source: str, text: str) -> str:
    """A page's text, with links to where the others stand on the site.

    What is no page, such as a test, becomes the words of its link alone: a site cannot show it.
    """
    here, place = Path(source).parent, Path(PAGES[source]).parent

    def link(match: re.Match[str]) -> str:
        sign, words, target, anchor = match.groups("")
        if not target or "://" in target:
            return match[0]
        wanted = os.path.normpath(here / target)
        if wanted not in PAGES:
            if not (ROOT / wanted).exists():
                raise SystemExit(f"{source}: {target} leads nowhere")
            return words
        return f"{sign}[{words}]({os.path.relpath(PAGES[wanted], place)}{anchor})"

    # What is shown of a terminal or a program is no link.
    parts = _FENCE.split(text)
    return "".join(part if n % 2 else _LINK.sub(link, part) for n, part in enumerate(parts))


def without_code(text: str) -> str:
    """A page's text, without what it shows of a terminal or a program."""
    return "".join(_FENCE.split(text)[::2])


def write(folder: Path) -> None:
    """Write all pages into an empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    for source, place in PAGES.items():
        path = folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        if source.endswith(".md"):
            path.write_text(moved(source, (ROOT / source).read_text("utf-8")), "utf-8")
        else:
            shutil.copyfile(ROOT / source, path)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
