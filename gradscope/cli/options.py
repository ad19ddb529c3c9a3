"""The options that commands share, and what they mean taken together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from gradscope.errors import TargetError
from gradscope.target import Target, parse_target

F = TypeVar("F", bound=Callable[..., Any])

# Formats are named here again, and not imported, because a renderer costs more than all of --help;
# a test holds the two lists together.
FORMATS = ("tree", "json", "dot", "svg", "png", "pdf")


def _all_of(*decorators: Callable[[F], F]) -> Callable[[F], F]:
    def decorate(command: F) -> F:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return decorate


target_options = _all_of(
    click.argument("target", required=False),
    click.option("-m", "module", metavar="MODULE", help="Run a module, as python -m does."),
    click.option(
        "-c",
        "code",
        metavar="CODE",
        help="Run CODE; torch, nn, F and torch's functions are in scope.",
    ),
    click.option(
        "--let",
        "lets",
        multiple=True,
        metavar="NAME=VALUE",
        help="With -c: make a float leaf, as in --let 'a=[1,2,3]'.",
    ),
)
"""Which program to run."""

look_options = _all_of(
    click.option(
        "--root",
        metavar="EXPR",
        help="Start from this tensor: a variable of the program or an expression.",
    ),
    click.option(
        "--call",
        type=click.IntRange(min=1),
        default=1,
        metavar="N",
        show_default=True,
        help="Look at the program's Nth backward call.",
    ),
    click.option("--run-on", is_flag=True, help="Let the program go on after that call."),
    click.option(
        "--values", is_flag=True, help="Keep the values of all tensors, not only small ones."
    ),
    click.option("--saved", is_flag=True, help="Show what each node saved for backward."),
)
"""Which backward call or tensor to look at, and how closely."""

output_options = _all_of(
    click.option(
        "-o",
        "--output",
        metavar="FILE",
        help="Write to FILE, whose suffix chooses the format; - is stdout.",
    ),
    click.option(
        "--format",
        "format_name",
        type=click.Choice(FORMATS),
        help="The format, where the suffix of FILE does not say it.",
    ),
    click.option(
        "--depth",
        type=click.IntRange(min=1),
        metavar="N",
        help="Open modules down to this depth of calls.",
    ),
    click.option("--all", "everything", is_flag=True, help="Show every node; fold nothing."),
    click.option("--path", metavar="LEAF", help="Show only the ways from the root to this leaf."),
    click.option(
        "--width",
        type=click.IntRange(min=20),
        metavar="N",
        help="Columns of the tree; the terminal's own by default.",
    ),
    click.option(
        "--color",
        type=click.Choice(["auto", "always", "never"]),
        default="auto",
        show_default=True,
        help="Colour the tree; auto: on a terminal, unless NO_COLOR is set.",
    ),
    click.option("-q", "--quiet", is_flag=True, help="No remarks on stderr; errors stay."),
)
"""Where the result goes and what it looks like."""

doctor_options = _all_of(
    click.option(
        "--steps",
        metavar="N|all",
        default="5",
        show_default=True,
        help="Watch this many backward calls, then stop the program; all: let it run to its end.",
    ),
    click.option("--keep-going", is_flag=True, help="Do not stop at the first serious finding."),
    click.option(
        "--thorough",
        is_flag=True,
        help="Look at every backward call in full. By default only the first ones are, then "
        "ever fewer, and those where something turned up.",
    ),
    click.option(
        "--check",
        is_flag=True,
        help="Compare every custom Function with finite differences, not only those with few "
        "inputs.",
    ),
    click.option(
        "--fail-on",
        type=click.Choice(["information", "warning", "error"]),
        default="warning",
        show_default=True,
        help="Exit with status 1 from this severity on.",
    ),
    click.option(
        "--ignore", metavar="CODE", multiple=True, help="Leave this rule out; may be repeated."
    ),
    click.option(
        "--format",
        "format_name",
        type=click.Choice(["text", "json", "github"]),
        default="text",
        show_default=True,
        help="How findings are told.",
    ),
    click.option(
        "-o",
        "--output",
        metavar="FILE",
        help="Also write the report with its findings to FILE, whose suffix chooses the format.",
    ),
    click.option("-q", "--quiet", is_flag=True, help="No progress and no remarks on stderr."),
)
"""What a doctor is asked to do, and how the findings are told."""


def target_from(options: dict[str, Any], arguments: tuple[str, ...]) -> Target | None:
    """Take the program out of the options; None when they name none.

    Raises:
        TargetError: when they name two, or the parts do not fit together.
    """
    named, module, code = (options.pop(key) for key in ("target", "module", "code"))
    lets = tuple(_let(text) for text in options.pop("lets"))
    if sum(given is not None for given in (named, module, code)) > 1:
        raise TargetError("two programs given at once", "give one of TARGET, -m MODULE, -c CODE")
    if code is not None:
        return Target("code", code, arguments, lets)
    if lets:
        raise TargetError("--let only works with -c", "a script makes its own tensors")
    if module is not None:
        return Target("module", module, arguments)
    return None if named is None else parse_target(named, arguments)


def _let(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator:
        raise TargetError(f"--let {text} gives no value", "write it as --let 'a=[1,2,3]'")
    return name.strip(), value.strip()
