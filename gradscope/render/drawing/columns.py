"""The columns of the tree, and which of them go first where there is no room."""

from __future__ import annotations

from dataclasses import replace

from gradscope.render.words.table import Column

COLUMNS = (
    Column("node", narrowest=16, comfort=24),
    Column("expression", drop=6, narrowest=8, comfort=22, essential=True),
    Column("shape", drop=1),
    Column("value", drop=3, right=True, essential=True),
    Column("gradient", drop=5, right=True, essential=True),
    Column("‖g‖", right=True),
    Column("", drop=2),
    Column("source", drop=4, narrowest=14, comfort=22, essential=True),
)
"""The line of the program stays where a shape does not: whoever looks wants to go there."""


FOLDED_DROPS = {"shape": 1, "value": 2, "gradient": 3, "": 4, "source": 5}
"""In a folded view sizes are compared down the column, so the bar stays longer than shapes."""


def of_folded(column: Column, width: int) -> Column:
    essential = column.essential and column.title not in ("gradient", "value")
    drop = FOLDED_DROPS.get(column.title, column.drop)
    comfort = min(column.comfort, width // 4) if column.title == "expression" else column.comfort
    return replace(column, drop=drop, comfort=comfort, essential=essential)
