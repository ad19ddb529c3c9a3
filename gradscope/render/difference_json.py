"""The whole comparison as JSON, with its verdict."""

from __future__ import annotations

import msgspec

from gradscope.compare import Comparison
from gradscope.plain import to_json
from gradscope.render.options import Options


def render(comparison: Comparison, _options: Options) -> bytes:
    """All fields; numbers of nodes, edges and leaves are those of the two reports."""
    fields = msgspec.structs.asdict(comparison)
    head = {"format": fields.pop("format"), "verdict": comparison.verdict}
    return to_json({**head, **fields})
