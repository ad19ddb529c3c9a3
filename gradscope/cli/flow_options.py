"""The options of ``backward`` that say how closely gradients are watched, and how often."""

from __future__ import annotations

import click

steps_option = click.option(
    "--steps",
    type=click.IntRange(min=1),
    default=1,
    metavar="N",
    show_default=True,
    help="Watch N of the program's own backward calls, from --call on, where they walk the same "
    "graph; -o FILE.html switches between them.",
)

histograms_option = click.option(
    "--histograms",
    is_flag=True,
    help="Count the elements of large gradients by size, for -o FILE.html and .json; tables do.",
)
