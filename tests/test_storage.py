"""Saving and loading: nothing is lost, and every bad file gets one clear line."""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec
import pytest

from gradscope.errors import ReportError
from gradscope.model.observations import Cut, Observations, Watched
from gradscope.model.plain import Struct, to_json
from gradscope.model.report import Report
from gradscope.model.storage import decode, encode, load, pack
from tests.looking import Session
from tests.reports import CASES, small


@pytest.mark.parametrize("case", CASES)
def test_a_report_survives_the_round_trip_and_equal_ones_give_equal_bytes(case: str) -> None:
    report, other = CASES[case](), CASES[case]()
    assert decode(encode(report)) == report
    assert encode(report) == encode(other)
    assert pack(encode(report)) == pack(encode(other))


def test_the_saved_form_is_strict_json_without_nan() -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(f"bare {constant}")

    saved = json.loads(encode(CASES["broken"]()), parse_constant=refuse)
    numbers = [value for info in saved["passes"][0]["gradients"] for value in info["values"]]
    assert "NaN" in numbers and "Infinity" in numbers and None not in numbers


def test_gzip_is_known_by_its_content_not_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "no-suffix"
    path.write_bytes(gzip.compress(encode(small())))
    assert load(path) == small()


def saved() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(encode(small()))
    return document


def change(path: str, value: object) -> bytes:
    """The small report with one field, named as in ``graph.nodes.0.id``, set to something else."""
    document = saved()
    *way, last = [int(step) if step.isdigit() else step for step in path.split(".")]
    place: Any = document
    for step in way:
        place = place[step]
    place[last] = value
    return json.dumps(document).encode()


def test_of_what_a_doctor_has_seen_only_the_figures_are_saved() -> None:
    seen = Observations(watched=3, cuts=(Cut(None, "detach", "function"),))
    report = msgspec.structs.replace(small(), observations=seen)
    assert json.loads(encode(report))["observations"] == {"watched": 3}
    assert decode(encode(report)).observations == Watched(watched=3)


def test_of_an_older_report_what_its_doctor_had_seen_is_dropped() -> None:
    seen = {"watched": 3, "disorders": [{"kind": "step alone", "origin": None, "more": 1}]}
    report = decode(json.dumps({**saved(), "observations": seen}).encode())
    assert report.observations == Watched(watched=3)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", "ends too early"),
        (encode(small())[:-100], "ends too early"),
        (pack(encode(small()))[:-20], "broken gzip data"),
        (b"\x1f\x8bnonsense", "broken gzip data"),
        (b"hello", "not JSON"),
        (b"[1, 2]", "not a gradscope report"),
        (b"{}", "not a gradscope report"),
        (b'{"format": 1}', "not a gradscope report"),
        (b"[" * 100_000, "not a gradscope report"),
        (b'{"x":' + b"[" * 100_000, "nested too deeply"),
        (change("format", "gradscope/2"), "gradscope/2 is not a version this gradscope reads"),
        (change("graph.nodes.0.id", "x"), "graph.nodes[0].id: expected `int`, got `str`"),
        (change("graph.edges.1", [0, 1, 2]), "graph.edges[1]: expected `array`"),
        (change("graph.nodes.0.kind", "magic"), "graph.nodes[0].kind: invalid enum value 'magic'"),
        (change("passes.0.gradients.0.norm", None), ""),
        (change("passes.0.gradients.0.norm", "nan"), "passes[0].gradients[0].norm"),
        (change("passes.0.gradients.0.state", None), "passes[0].gradients[0].state"),
        (change("surprise", 1), "report: object contains unknown field `surprise`"),
        (change("graph.nodes.0.id", 7), "graph.nodes[0].id: is 7"),
    ],
)
def test_bad_data_is_explained_in_one_line(data: bytes, expected: str) -> None:
    if not expected:
        decode(data)  # an unknown norm is allowed
        return
    with pytest.raises(ReportError) as caught:
        decode(data)
    assert expected in caught.value.what
    assert "\n" not in caught.value.what
    assert caught.value.status == 2


def test_a_missing_file_is_an_error_with_its_name(tmp_path: Path) -> None:
    for path in (tmp_path / "missing.json", tmp_path, tmp_path / "missing" / "deep.json"):
        with pytest.raises(ReportError, match="cannot read"):
            load(path)
    with pytest.raises(ReportError, match="cannot read"):
        load("nul\0in-name")


def test_errors_in_a_file_begin_with_its_name(tmp_path: Path) -> None:
    path = tmp_path / "cut.json"
    path.write_bytes(encode(small())[:-1])
    with pytest.raises(ReportError, match=r"cut\.json: the JSON ends too early") as caught:
        load(path)
    # The advice names no other command.
    again = "make it again: run the command that wrote it once more, with -o FILE.json"
    assert caught.value.hint == again


def test_a_subclass_is_saved_as_what_it_is() -> None:
    class Other(Report, frozen=True):
        """A report with methods, as the public interface has one."""

    assert encode(Other(*msgspec.structs.astuple(small()))) == encode(small())


# ---------------------------------------------------------------- numbers that JSON does not know

NON_FINITE = {math.nan: "NaN", math.inf: "Infinity", -math.inf: "-Infinity"}


def records(hint: Any = Report) -> dict[type[Struct], dict[str, Any]]:
    """The types of all fields of all records that a report can hold."""
    found: dict[type[Struct], dict[str, Any]] = {}
    waiting = [hint]
    while waiting:
        one = waiting.pop()
        waiting.extend(get_args(one))
        if isinstance(one, type) and issubclass(one, Struct) and one not in found:
            found[one] = get_type_hints(one)
            waiting.extend(found[one].values())
    return found


def holds_a_float(hint: Any) -> bool:
    return hint is float or any(holds_a_float(one) for one in get_args(hint))


def example(hint: Any, value: float | None = None) -> Any:
    """The smallest thing of a type; with a value, one that holds it in its first float."""
    parts = get_args(hint)
    if get_origin(hint) is Literal:
        return parts[0]
    if get_origin(hint) is tuple:
        inside = [one for one in parts if one is not ...]
        return tuple(example(one, value) for one in inside)
    if parts:  # a union
        if value is not None and any(map(holds_a_float, parts)):
            return example(next(one for one in parts if holds_a_float(one)), value)
        return None if type(None) in parts else example(parts[0])
    if isinstance(hint, type) and issubclass(hint, Struct):
        needed = set(hint.__struct_fields__[: -len(hint.__struct_defaults__) or None])
        hints = get_type_hints(hint)
        return hint(**{name: example(hints[name]) for name in needed})
    if hint is int:
        return 1
    return value if hint is float and value is not None else hint()


NUMBERS = [
    (record, name, hint)
    for record, fields in records().items()
    for name, hint in fields.items()
    if holds_a_float(hint)
]


@pytest.mark.parametrize(
    ("record", "name", "hint"), NUMBERS, ids=[f"{one[0].__name__}.{one[1]}" for one in NUMBERS]
)
def test_no_number_is_lost_in_any_field(record: type[Struct], name: str, hint: Any) -> None:
    # What is not negative has one less.
    for value, word in ((value, word) for value, word in NON_FINITE.items() if word in str(hint)):
        written = msgspec.structs.replace(example(record), **{name: example(hint, value)})
        read = msgspec.json.decode(to_json(written), type=record)
        assert word in str(getattr(read, name)), read


def test_records_that_hold_numbers_are_found() -> None:
    names = {record.__name__ for record, _, _ in NUMBERS}
    assert {"GradientInfo", "GradientComparison", "Step", "Local", "Term"} <= names


ANSWERS = {
    **dict.fromkeys(("explain", "memory", "check"), "holds no"),
    "depends --of h --on w": "holds no dependence",
    "backward --by term": "holds no split",
    "doctor": "was not saved by the doctor",
}
ANSWERED = """
import torch
w = torch.tensor([1.0, 2.0], requires_grad=True)
optimizer = torch.optim.SGD([w], lr=0.1)
h = w * 3
fit, size = h.square().sum(), (w.detach() * h).sum()
loss = fit + size
loss.backward()
optimizer.step()
"""


@pytest.mark.parametrize("command", ANSWERS)
def test_an_answer_is_shown_again_from_its_file(command: str, session: Session) -> None:
    words, path = command.split(), str(session.write(ANSWERED))
    first = session.cli(*words, path)
    assert session.cli(*words, path, "-o", "saved.json.gz").status == first.status == 0
    # A gradient that was taken apart is asked for as such again.
    asked = words if words[0] == "backward" else words[:1]
    again = session.cli(*asked, "saved.json.gz")
    assert (again.status, again.out, again.err) == (0, first.out, "")
    session.cli("trace", path, "-o", "plain.json")
    refused = session.cli(*asked, "plain.json")
    assert (refused.status, refused.out) == (2, "")
    assert f"plain.json {ANSWERS[command]}" in refused.err
