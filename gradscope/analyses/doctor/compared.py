"""What came of the custom Functions of a run, as plain data and in words.

Knows nothing of how they are compared.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from gradscope.analyses.doctor.captured_call import CapturedCall, Origins
from gradscope.analyses.doctor.derivatives import Derivatives
from gradscope.model.checks import CallCheck
from gradscope.words import listed


def functions(known: Derivatives, case: CapturedCall) -> Iterator[CallCheck]:
    """Those of the graph shown, and those that are in other graphs."""
    told = {(one.function, one.order, one.verdict) for one in case.functions}
    for check in case.functions:
        yield msgspec.structs.replace(check, returned=_returned(known, check, case.origins))
    for _, place, check in known.checked:
        key = (check.function, check.order, check.verdict)
        if key not in told:
            told.add(key)
            origin = case.origins.of_place(place)
            returned = _returned(known, check, case.origins)
            yield msgspec.structs.replace(check, nodes=(), origin=origin, returned=returned)


def _returned(known: Derivatives, check: CallCheck, origins: Origins) -> int | None:
    return origins.of_site(known.returns.get(check.function))


def uncompared(known: Derivatives, origins: Origins) -> Iterator[str]:
    """Those whose backward was not compared with finite differences, and why."""
    by_reason: dict[str, list[str]] = {}
    for (name, place, order), reason in known.uncompared.items():
        line = origins.line(place)
        what = f"double backward of {name}" if order == 2 else name
        by_reason.setdefault(reason, []).append(f"{what} ({line})" if line else what)
    for reason, names in by_reason.items():
        yield f"not compared with finite differences: {listed(names)}, because {reason}"
