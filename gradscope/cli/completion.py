"""What a shell offers when Tab is pressed, where click does not know it: rules, reports, files.

Imports nothing that takes long: each press of the key starts python anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from gradscope.formats import SAVED

Items = list[CompletionItem[str]]


def rules(_context: click.Context, _parameter: click.Parameter, begun: str) -> Items:
    """Rules of the doctor whose code begins so, or whose name does."""
    from gradscope.rules import RULES

    by_code = [one for one in RULES.values() if one.code.startswith(begun.upper())]
    items = [CompletionItem(rule.code, help=rule.name) for rule in by_code]
    names = (rule for rule in RULES.values() if rule.name.startswith(begun.lower()))
    return items or [CompletionItem(rule.name, help=rule.code) for rule in names]


def commands(context: click.Context, _parameter: click.Parameter, begun: str) -> Items:
    """The commands of gradscope whose name begins so."""
    known = context.find_root().command
    return known.shell_complete(context.find_root(), begun)


def files(_context: click.Context, _parameter: click.Parameter, begun: str) -> Items:
    """Any file: the shell lists them itself."""
    return [CompletionItem(begun, type="file")]


def reports(context: click.Context, parameter: click.Parameter, begun: str) -> Items:
    """Saved reports; where there is none in that folder, whatever the shell lists."""
    return [CompletionItem(name) for name in _saved(begun)] or files(context, parameter, begun)


def _saved(begun: str) -> Iterator[str]:
    folder = begun[: begun.rfind("/") + 1]
    try:
        names = sorted(path.name for path in Path(folder).iterdir() if path.is_file())
    except (OSError, ValueError):  # there is no such folder, or it may not be read
        return
    for name in names:
        if name.endswith((*SAVED, ".jsonl")) and f"{folder}{name}".startswith(begun):
            yield f"{folder}{name}"
