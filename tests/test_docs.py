"""Everything the docs show is what the commands print, and every command is documented."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks import gallery
from gradscope.cli.commands import gradscope
from gradscope.formats import FORMATS, SORTABLE
from tests import site
from tests.transcripts import BLOCK, PAGES, ROOT, commands, make_runner, same

LONG = ("notebooks", "rescue", "diff", "the-gradient-argument", "shapes")
"""Pages that start kernels of their own, or train the large examples again and again."""


def _marked(page: Path) -> object:
    return pytest.param(page, marks=pytest.mark.long) if page.stem in LONG else page


@pytest.mark.parametrize(
    "page", [*map(_marked, PAGES)], ids=lambda page: str(page.relative_to(ROOT))
)
def test_shown_output_is_printed(page: Path, tmp_path: Path) -> None:
    run = make_runner(tmp_path)
    for block in BLOCK.finditer(page.read_text("utf-8")):
        for line, shown in commands(block[2]):
            printed = run(line, shown)
            assert same(shown, printed), f"$ {line}\n{printed}\n(the page shows)\n{shown}"


@pytest.mark.parametrize(
    ("picture", "command"),
    [
        ("weights.svg", "backward examples/weights.py --gradient '[0.1, 1, 0.0001]'"),
        ("chain.svg", "explain examples/chain_rule.py"),
        ("gpt.svg", "backward examples/char_gpt/train.py"),
        ("gallery/gan.svg", "backward examples/gallery/models.py::gan"),
    ],
)
def test_pictures_are_what_the_tool_draws(picture: str, command: str, tmp_path: Path) -> None:
    (tmp_path / picture).parent.mkdir(exist_ok=True)
    make_runner(tmp_path)(f"gradscope {command} -o {tmp_path / picture}")
    # Graphviz versions place things differently, but the words are ours.
    shown, drawn = (
        " ".join(re.findall(r"<text[^>]*>([^<]*)<", (folder / picture).read_text("utf-8")))
        for folder in (ROOT / "docs" / "img", tmp_path)
    )
    assert same(shown, drawn)


def test_the_gallery_has_every_picture_and_stays_small() -> None:
    page = (ROOT / "docs" / "gallery.md").read_text("utf-8")
    pictures = {path.stem: path.stat().st_size for path in gallery.FOLDER.glob("*.svg")}
    assert not any("file:" in path.read_text("utf-8") for path in gallery.FOLDER.glob("*.svg"))
    assert set(re.findall(r"\]\(img/gallery/(\w+)\.svg\)", page)) == set(pictures)
    assert set(pictures) == set(gallery.NAMES)
    assert sum(pictures.values()) <= gallery.MOST


def test_every_command_and_option_is_in_the_reference() -> None:
    reference = (ROOT / "docs" / "commands.md").read_text("utf-8")
    for name, command in gradscope.commands.items():
        assert f"$ gradscope {name} --help" in reference
        for parameter in command.params:
            assert all(option in reference for option in parameter.opts if option.startswith("-"))


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_is_in_the_docs(name: str) -> None:
    reference = (ROOT / "docs" / "commands.md").read_text("utf-8")
    assert re.search(rf"--format FORMAT [^-]*\b{name}\b", reference)
    guides = ("getting-started.md", "shapes.md")
    guide = "".join((ROOT / "docs" / one).read_text("utf-8") for one in guides)
    # The main suffix is among those that the guide lists; what has none is an option there.
    assert f"`{(*FORMATS[name].suffixes, f'--format {name}')[0]}`" in guide


@pytest.mark.parametrize("column", SORTABLE)
def test_every_column_is_in_the_reference(column: str) -> None:
    reference = (ROOT / "docs" / "commands.md").read_text("utf-8")
    assert re.search(rf"\bcolumn:[^.]*\b{column}\b", reference)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_table_is_whole(page: Path) -> None:
    text = re.sub(r"(?s)```.*?```|`[^`\n]*`|\\\|", "", page.read_text("utf-8"))
    for table in re.findall(r"(?m)(?:^\|.*\n)+", text):
        head, rule, *rows = table.splitlines()
        assert re.fullmatch(r"[|: -]+", rule), head
        assert {row.count("|") for row in (rule, *rows)} == {head.count("|")}, head


def test_the_site_has_every_page_and_no_broken_link(tmp_path: Path) -> None:
    site.write(tmp_path)
    listed = set(re.findall(r'"([\w./-]+\.md)"', (ROOT / "zensical.toml").read_text("utf-8")))
    there = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.md")}
    # The rules are listed by a page of their own.
    assert listed == {path for path in there if not re.fullmatch(r"rules/GS\d+\.md", path)}
    for page in tmp_path.rglob("*.md"):
        for target in re.findall(r"\]\(([^)#\s]+)", site.without_code(page.read_text("utf-8"))):
            assert target.startswith("http") or (page.parent / target).exists(), (page, target)


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/architecture.md"])
def test_files_that_are_named_exist(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    named = set(re.findall(r"`(\w+(?:/[\w.]+)*/?|\w+\.py)(?:::\w+)?`", text))
    paths = {name for name in named if "/" in name or name.endswith(".py")}
    assert len(paths) > 10
    for path in paths:
        # The tour is of the package, and names a module by itself where its room is known.
        is_there = (ROOT / path).exists() or any((ROOT / "gradscope").glob(f"**/{path}"))
        assert is_there, f"{page} names {path}"
