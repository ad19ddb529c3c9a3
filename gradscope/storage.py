"""The saved form of a Report: JSON, or gzipped JSON, and the way back with validation.

Bytes in, a checked Report out; whatever is wrong with the bytes becomes one :class:`ReportError`
that says where and what was expected.  Must not know of torch, or of how a report is made or
drawn."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

import msgspec

from gradscope.errors import ReportError
from gradscope.invariants import check
from gradscope.plain import to_json
from gradscope.report import FORMAT, Report

GZIP_MAGIC = b"\x1f\x8b"

_AGAIN = "make it again: run the command that wrote it once more, with -o FILE.json"


class _Head(msgspec.Struct):
    """The one field read before anything else is believed."""

    format: str = ""


def encode(report: Report) -> bytes:
    """The report as JSON; equal reports give equal bytes.

    The version comes first and is always there, though fields that hold their default are left out.
    """
    fields = msgspec.structs.asdict(report)
    for late in ("observations", "findings", "memory", "checks", "explanation"):
        # Where nobody asked for an answer, the saved form says nothing of one.
        if not fields[late]:
            del fields[late]
    return to_json({"format": report.format, **fields})


def decode(data: bytes) -> Report:
    """The report in these bytes, JSON or gzipped JSON, with types and invariants checked.

    Raises:
        ReportError: naming the place and what was expected there.
    """
    text = _unpack(data)
    _check_version(text)
    try:
        report = msgspec.json.decode(text, type=Report)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise ReportError(_explain(error), _AGAIN) from None
    check(report)
    return report


def load(path: str | Path) -> Report:
    """The report saved in a file; see :func:`decode`.

    Raises:
        ReportError: also when there is no such file, it is a directory, or it may not be read.
    """
    try:
        data = Path(path).read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ReportError(f"cannot read {path}: {reason}", "name a file saved with -o") from None
    try:
        return decode(data)
    except ReportError as error:
        raise ReportError(f"{path}: {error.what}", error.hint) from None


def pack(data: bytes) -> bytes:
    """Gzipped, without a time stamp, so that equal reports give equal files."""
    return gzip.compress(data, mtime=0)


def _unpack(data: bytes) -> bytes:
    if not data.startswith(GZIP_MAGIC):
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise ReportError(f"broken gzip data: {error}", _AGAIN) from None


def _check_version(text: bytes) -> None:
    """Refuse other versions by name, before their fields are found to be strange one by one."""
    try:
        head = msgspec.json.decode(text, type=_Head)
    except msgspec.ValidationError:
        # Some other JSON, such as a list; it names no version, and is refused below.
        head = _Head()
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise ReportError(_explain(error), _AGAIN) from None
    if not head.format:
        raise ReportError(f'not a gradscope report: no "format": "{FORMAT}" in it', _AGAIN)
    if head.format != FORMAT:
        raise ReportError(
            f"{head.format} is not a version this gradscope reads ({FORMAT} is)", _AGAIN
        )


def _explain(error: Exception) -> str:
    """msgspec's message, place first: ``graph.nodes[0].id: expected `int`, got `str```."""
    message = str(error)
    if isinstance(error, msgspec.ValidationError):
        wrong, _, place = message.partition(" - at `$")
        place = place.rstrip("`").lstrip(".")
        return f"{place or 'report'}: {wrong[:1].lower()}{wrong[1:]}"
    if "truncated" in message:
        return "the JSON ends too early: the file is cut off"
    if isinstance(error, RecursionError):
        return "not a gradscope report: nested too deeply"
    return f"not JSON: {message}"
