"""Which group of a command's help an option stands in, so that it stands there in every command."""

from __future__ import annotations

import click

LOOK = "What to look at"
"""Where an option stands that no other group names."""

GROUPS = {
    "What to run": ("-m", "-c", "--let", "--eager", "--wait", "--max-size"),
    LOOK: (),
    "How to draw": (
        *("--format", "--depth", "--all", "--path", "--focus", "--top", "--sort", "--by"),
        *("--names", "--precision", "--width", "--color"),
    ),
    "Where to write": ("-o", "--open", "-q", "--quiet"),
    "Other": ("--version", "--no-pager", "--help"),
}
"""The groups, in the order of a person's questions."""


def of(options: list[click.Parameter], context: click.Context) -> dict[str, list[tuple[str, str]]]:
    """The lines of help of all options, by the titles of their groups; none is empty."""
    found: dict[str, list[tuple[str, str]]] = {title: [] for title in GROUPS}
    for option in options:
        record = option.get_help_record(context) if isinstance(option, click.Option) else None
        if record is not None:
            found[_group(option)].append(record)
    return {title: records for title, records in found.items() if records}


def _group(option: click.Parameter) -> str:
    names = set(option.opts)
    return next((title for title, own in GROUPS.items() if names & set(own)), LOOK)
