"""Torch's own derivative formulas, by the class of the node that computes them.

They stand in ``derivatives.yaml``, which ships with torch; torchgen reads it and knows which node
each entry becomes.  That takes seconds, so the table is kept in a file, one for each version of
torch.  Losing that file costs those seconds, and no more.
"""

from __future__ import annotations

import contextlib
import secrets
from pathlib import Path
from typing import Any

import msgspec
import torch

from gradscope.handlers import let_pass
from gradscope.model.explanation import DerivativeRule, Formula
from gradscope.model.plain import Struct

LAYOUT = 1
"""Version of the kept table."""


class FormulaEntry(Struct, frozen=True):
    """The rule of a node class, and the arguments its input slots stand for in order; an argument
    in ``lists`` is a list of tensors and takes several slots."""

    rule: DerivativeRule
    arguments: tuple[str, ...]
    lists: tuple[str, ...] = ()


class FormulaTable(Struct, frozen=True):
    """All formulas of one torch; ``missing`` says why there are none."""

    entries: dict[str, FormulaEntry]
    missing: str = ""


def formulas(cache: str) -> FormulaTable:
    """The formulas of the torch that is installed.

    Args:
        cache: the folder to keep them in; "" for nowhere.
    """
    path = Path(cache) / f"derivatives-{torch.__version__}-{LAYOUT}.json" if cache else None
    kept = _read(path) if path else None
    if kept is not None:
        return kept
    try:
        table = _load()
    except Exception as error:  # whatever torchgen of another torch may stumble over
        let_pass(error)
        reason = f"{type(error).__name__}: {error}"
        if isinstance(error, ImportError) and error.name == "yaml":
            reason = "PyYAML is not installed (pip install pyyaml)"
        return FormulaTable({}, f"torch's derivatives.yaml could not be read: {reason}")
    if path is not None:
        _keep(path, msgspec.json.encode(table))
    return table


def _read(path: Path) -> FormulaTable | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=FormulaTable)
    except (OSError, msgspec.DecodeError):
        return None


def _keep(path: Path, data: bytes) -> None:
    """Write the whole file or none; a folder that cannot be written is no error."""
    beside = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside.write_bytes(data)
        beside.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)


def _load() -> FormulaTable:
    import torchgen
    from torchgen.packaged.autograd.load_derivatives import load_derivatives

    base = Path(torchgen.__file__).parent / "packaged"
    native = base / "ATen" / "native"
    infos, _ = load_derivatives(
        str(base / "autograd" / "derivatives.yaml"),
        str(native / "native_functions.yaml"),
        str(native / "tags.yaml"),
    )
    found = (info for by_key in infos.values() for info in by_key.values())
    return FormulaTable({info.op: _entry(info) for info in found if info.op})


def _entry(info: Any) -> FormulaEntry:
    arguments = [(one.name, str(one.type)) for one in info.args_with_derivatives]
    written = [Formula(tuple(one.var_names), one.original_formula) for one in info.derivatives]
    # In the order in which the function takes them, not in that of the file.
    order = [name for name, _ in arguments]
    written.sort(key=lambda one: min(order.index(name) for name in one.arguments))
    return FormulaEntry(
        DerivativeRule(info.op, str(info.func.func), tuple(written)),
        tuple(order),
        tuple(name for name, kind in arguments if "List" in kind),
    )
