"""Files and names that want to do harm: what tests/test_hostile.py shows in every format.

``tests/saved`` holds reports as the programs beside them gave them, one of each command that
saves one, and ``on_ranks`` of ``tests/ranks/built.py``; changed in one way or another they are the
corpus.  Everything is drawn from seeds, so
that a failure comes back.
"""

from __future__ import annotations

import gzip
import json
import random
import re
import unicodedata
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec.inspect as schema

from gradscope.model.report import Report

FOLDER = Path(__file__).parent / "saved"
SAVED = tuple(sorted(path.stem for path in FOLDER.glob("*.json")))
"""The names of the reports there are."""

CLIPBOARD = "\x1b]52;c;ZWNobyBoaQ==\x07"
TEXTS = (
    f"{CLIPBOARD}\x1b[2J\x1b[H\x1b[5;7mclear",
    "\x9b2J\x9d0;title\x9cC1\x85\x7f",
    "\u202eright to left\u2066\u2069\u200e\u061c",
    "first\ngradscope: forged\r\n\ttab\x0b\x0c\u2028\u2029",
    "\x00null\ufffe\uffff\ufdd0 no characters",
    "</script><script>acted()</script><b>&amp;'\"`{x}%s\\N[red]",
    "=HYPERLINK(A1)|cmd;@SUM(1)",
    "e" + "\u0301" * 40,
    "",
    "javascript:alert(1)//.py",
    "constructor",
    "x" * 9_000,
)
"""Texts that act somewhere, or are in the way: terminal, XML, HTML, spreadsheet, Graphviz."""

NUMBERS = (0, -1, 3, 2**31, 2**53, 2**63, 2**64, 10**30, 10**400, -(10**30))
FLOATS = (-0.0, -1.0, 5e-324, 1.7e308, -1.7e308)
OTHERS: tuple[object, ...] = (
    None,
    True,
    7,
    -7,
    1.5,
    "text",
    [],
    {},
    [[]],
    {"a": 1},
    "NaN",
    "MulBackward0",
)
"""What stands where something else is expected."""


def document(name: str) -> dict[str, Any]:
    """One of the saved reports as JSON data."""
    loaded: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_bytes())
    return loaded


def data_of(document: object) -> bytes:
    """JSON data as somebody else would write it: everything as it is, but lone surrogates."""
    return json.dumps(document, ensure_ascii=False).encode("utf-8", "replace")


# ---------------------------------------------------------------- places in a report


class Place(NamedTuple):
    """A value inside a document: its type, and where it is held."""

    type: schema.Type
    holder: Any
    key: Any

    def put(self, value: object) -> None:
        """Another value in its place."""
        self.holder[self.key] = value


def places(document: dict[str, Any]) -> list[Place]:
    """All values of a document that are no records or lists themselves."""
    return list(_inside(_REPORT, document))


_REPORT = schema.type_info(Report)


def _inside(kind: schema.Type, value: Any) -> Iterator[Place]:
    if isinstance(kind, schema.UnionType):
        inner = [one for one in kind.types if isinstance(one, (schema.StructType, *_LISTS))]
        kind = inner[0] if inner and isinstance(value, (dict, list)) else kind
    if isinstance(kind, schema.StructType):
        for position, field in enumerate(kind.fields):
            key: Any = position if kind.array_like else field.encode_name
            if position < len(value) if kind.array_like else key in value:
                yield from _held(field.type, value, key)
    elif isinstance(kind, schema.VarTupleType):
        for position in range(len(value)):
            yield from _held(kind.item_type, value, position)
    elif isinstance(kind, schema.TupleType):
        for position, item in enumerate(kind.item_types):
            yield from _held(item, value, position)


_LISTS = (schema.VarTupleType, schema.TupleType)


def _held(kind: schema.Type, holder: Any, key: Any) -> Iterator[Place]:
    if isinstance(holder[key], (dict, list)):
        yield from _inside(kind, holder[key])
    else:
        yield Place(kind, holder, key)


def _is(place: Place, kind: type[schema.Type]) -> bool:
    types = place.type.types if isinstance(place.type, schema.UnionType) else (place.type,)
    return any(isinstance(one, kind) for one in types)


# ---------------------------------------------------------------- the corpus


def with_texts(name: str, turn: int) -> bytes:
    """A report with a hostile text in every field that holds text."""
    changed = document(name)
    for position, place in enumerate(places(changed)):
        # The number of paths is a number, though it is written as text.
        if _is(place, schema.StrType) and place.key != "count":
            place.put(TEXTS[(position + turn) % len(TEXTS)])
    return data_of(changed)


def with_numbers(name: str, seed: int) -> bytes:
    """A report with a few of its numbers set to others."""
    rng, changed = random.Random(f"{name}{seed}"), document(name)
    numeric = [one for one in places(changed) if _is(one, schema.IntType)]
    numeric += [one for one in places(changed) if _is(one, schema.FloatType)]
    for place in rng.sample(numeric, rng.randint(1, 2)):
        place.put(rng.choice(FLOATS if _is(place, schema.FloatType) else NUMBERS))
    return data_of(changed)


def with_other_types(name: str, seed: int) -> bytes:
    """A report with something else where one of its values is."""
    rng, changed = random.Random(f"{name}{seed}"), document(name)
    rng.choice(places(changed)).put(rng.choice(OTHERS))
    return data_of(changed)


def with_other_lists(name: str, seed: int) -> bytes:
    """A report one of whose lists is empty, or has an entry less or twice."""
    rng, changed = random.Random(f"{name}{seed}"), document(name)
    lists: list[list[Any]] = []
    waiting: list[Any] = [changed]
    for value in waiting:
        waiting.extend(value.values() if isinstance(value, dict) else ())
        if isinstance(value, list):
            lists.append(value)
            waiting.extend(value)
    chosen = rng.choice([one for one in lists if one])
    at = rng.randrange(len(chosen))
    chosen[at : at + 1] = rng.choice([[], [chosen[at], chosen[at]]])
    if rng.random() < 0.3:
        chosen.clear()
    return data_of(changed)


def flipped(name: str, seed: int) -> bytes:
    """A report with some of its bits the other way round, packed or not."""
    rng, data = random.Random(f"{name}{seed}"), bytearray((FOLDER / f"{name}.json").read_bytes())
    data = bytearray(gzip.compress(data)) if rng.random() < 0.2 else data
    for _ in range(rng.choice([1, 1, 3])):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(data)


def cut(name: str, part: float, packed: bool) -> bytes:
    """The first part of a report."""
    data = (FOLDER / f"{name}.json").read_bytes()
    data = gzip.compress(data) if packed else data
    return data[: int(part * len(data))]


@cache
def bomb(size: int) -> bytes:
    """Gzip of so many blanks: a thousandth of that."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    block = b" " * 2**20
    blocks = [packer.compress(block) for _ in range(size // len(block))]
    return b"".join([*blocks, packer.flush()])


ODD: dict[str, bytes] = {
    "nothing": b"",
    "a list": b"[1, 2]",
    "null": b"null",
    "a byte order mark": b"\xef\xbb\xbf{}",
    "utf-16": '{"format": "gradscope/1"}'.encode("utf-16"),
    "a surrogate": b'{"format": "\\ud800"}',
    "raw surrogate": b'{"format": "\xed\xa0\x80"}',
    "half an escape": b'{"format": "\\u12',
    "null bytes": b"\x00" * 1000,
    "nested lists": b"[" * 200_000,
    "nested records": b'{"format":"gradscope/1","graph":' + b'{"a":' * 200_000,
    "nested elsewhere": b'{"format":"gradscope/1","x":' + b"[" * 200_000 + b"]" * 200_000 + b"}",
    "the version before": b'{"format":"gradscope/0"}',
    "a version to come": b'{"format":"gradscope/2","graph":{}}',
    "a hostile version": json.dumps({"format": TEXTS[0]}).encode(),
    "a hostile field": json.dumps({"format": "gradscope/1", TEXTS[0] + TEXTS[2]: 1}).encode(),
    "only a version": b'{"format":"gradscope/1"}',
    "a long number": b'{"format":"gradscope/1","graph":' + b"9" * 100_000 + b"}",
    "a long text": b'{"format":"' + b"x" * 1_000_000 + b'"}',
    "half gzip": b"\x1f\x8b",
    "gzip of nothing": gzip.compress(b""),
    "gzip of gzip": gzip.compress(gzip.compress(b"{}")),
    "gzip and more": gzip.compress(b"{}") + b"more",
}
"""Files that are no report at all."""


# ---------------------------------------------------------------- what harm would look like

_HIDDEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
_STYLE = re.compile(r"\x1b\[(?!5)[\d;]*m")


def acting(text: str, color: bool = False) -> str:
    """The first characters of a text that would act on a terminal; "" where there are none.

    With ``color`` our own styles may be in it; none of them blinks."""
    shown = _STYLE.sub("", text) if color else text
    for character in sorted(set(shown) - {"\n", "\t", "\N{ZERO WIDTH JOINER}"}):
        code = ord(character)
        nothing = code & 0xFFFE == 0xFFFE or 0xFDD0 <= code <= 0xFDEF
        if unicodedata.category(character) in _HIDDEN or nothing:
            place = shown.index(character)
            return ascii(shown[max(place - 40, 0) : place + 10])
    return ""
