"""The whole comparison as JSON, with its verdict."""

from __future__ import annotations

import msgspec

from gradscope.analyses.diff.comparison import Comparison
from gradscope.model.storage import encode_json
from gradscope.render.options import Options


def render(comparison: Comparison, _options: Options) -> bytes:
    """All fields; numbers of nodes, edges and leaves are those of the two reports."""
    fields = msgspec.structs.asdict(comparison)
    head = {"format": fields.pop("format"), "verdict": comparison.verdict}
    return encode_json({**head, **fields})
