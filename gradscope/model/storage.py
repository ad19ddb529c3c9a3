"""The saved form of a Report: JSON, or gzipped JSON, and the way back with validation.

Bytes in, a checked Report out; whatever is wrong with the bytes becomes one :class:`ReportError`
that says where and what was expected.  Must not know of torch, or of how a report is made or
drawn."""

from __future__ import annotations

import gzip
import io
import zlib
from pathlib import Path

import msgspec

from gradscope.errors import ReportError
from gradscope.escaping import as_json
from gradscope.formats import MAX_SIZE
from gradscope.model.invariants import check
from gradscope.model.plain import to_json
from gradscope.model.report import FORMAT, Report
from gradscope.words import either

GZIP_MAGIC = b"\x1f\x8b"

_CHUNK = 2**20


def _again() -> str:
    way = either("run the command that wrote it once more, with -o FILE.json", "report.save(file)")
    return f"make it again: {way}"


class _Head(msgspec.Struct):
    """The one field read before anything else is believed."""

    format: str = ""


def encode(report: Report) -> bytes:
    """The report as JSON; equal reports give equal bytes.

    The version comes first and is always there, though fields that hold their default are left out.
    """
    fields = msgspec.structs.asdict(report)
    if report.observations is not None:
        fields["observations"] = report.observations.figures()
    answers = ("memory", "checks", "explanation", "split", "dependence", "ranks")
    for late in ("observations", "findings", *answers, "others"):
        # Where nobody asked for an answer, the saved form says nothing of one.
        if not fields[late]:
            del fields[late]
    return encode_json({"format": report.format, **fields})


def encode_json(data: object) -> bytes:
    """Any records as strict JSON, in which no number is lost
    (:func:`gradscope.model.plain.to_json`), and which is harmless to look at in a terminal."""
    encoded = to_json(data)
    if encoded.isascii() and b"\x7f" not in encoded:
        return encoded
    return as_json(encoded.decode()).encode()


def decode(data: bytes, max_size: int | None = MAX_SIZE) -> Report:
    """The report in these bytes, JSON or gzipped JSON, with types and invariants checked.

    Args:
        data: what was saved.
        max_size: bytes of JSON, unpacked, that are read at most; None is no limit.

    Raises:
        ReportError: naming the place and what was expected there.
    """
    return _decoded(_read(io.BufferedReader(io.BytesIO(data)), max_size))


def load(path: str | Path, max_size: int | None = MAX_SIZE) -> Report:
    """The report saved in a file; see :func:`decode`.

    Raises:
        ReportError: also when there is no such file, it is a directory, or it may not be read.
    """
    try:
        with Path(path).open("rb") as file:
            data = _read(file, max_size)
        return _decoded(data)
    except ReportError as error:
        raise ReportError(f"{path}: {error.what}", *error.hints) from None
    # What --max-size allows may still be more than there is.
    except MemoryError:
        raise ReportError(f"{path}: there is not enough memory to read it", _allow_more()) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ReportError(
            f"cannot read {path}: {reason}",
            either("name a file saved with -o", "name a file that report.save() wrote"),
        ) from None


def _decoded(text: bytearray) -> Report:
    _check_version(text)
    try:
        report = msgspec.json.decode(text, type=Report)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise ReportError(_explain(error), _again()) from None
    check(report)
    return report


def pack(data: bytes) -> bytes:
    """Gzipped, without a time stamp, so that equal reports give equal files."""
    return gzip.compress(data, mtime=0)


def _read(file: io.BufferedReader, max_size: int | None) -> bytearray:
    """All of a file, unpacked if it is packed: a few kilobytes can unpack to more than there is
    memory, so no more is unpacked than is allowed."""
    # A pipe can be read once.
    is_packed = file.peek(len(GZIP_MAGIC)).startswith(GZIP_MAGIC)
    stream = gzip.GzipFile(fileobj=file) if is_packed else file
    kept = bytearray()
    try:
        while chunk := stream.read(_CHUNK):
            kept += chunk
            if max_size is not None and len(kept) > max_size:
                raise ReportError(f"holds more than {max_size:,} bytes of JSON", _allow_more())
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ReportError(f"broken gzip data: {error}", _again()) from None
    return kept


def _check_version(text: bytearray) -> None:
    """Refuse other versions by name, before their fields are found to be strange one by one."""
    try:
        head = msgspec.json.decode(text, type=_Head)
    except msgspec.ValidationError:
        # Some other JSON, such as a list; it names no version, and is refused below.
        head = _Head()
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise ReportError(_explain(error), _again()) from None
    if not head.format:
        raise ReportError(f'not a gradscope report: no "format": "{FORMAT}" in it', _again())
    if head.format != FORMAT:
        raise ReportError(
            f"{head.format} is not a version this gradscope reads ({FORMAT} is)", _again()
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


def _allow_more() -> str:
    way = either("--max-size 4GiB", "max_size=4 * 2**30")
    return f"if you know who made it, allow more: {way}"
