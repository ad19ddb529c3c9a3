"""Small pieces of sentences: one table for each."""

from __future__ import annotations

import pytest

from gradscope import words
from gradscope.model.report import Kind, Node


@pytest.mark.parametrize(
    ("op", "kind", "expected"),
    [
        ("MulBackward0", "op", "Mul"),
        ("AddmmBackward12", "op", "Addmm"),
        ("CheckpointFunctionBackward", "op", "CheckpointFunction"),
        ("MulBackwardAutogradNestedTensor0", "op", "Mul"),
        ("torch::autograd::CopySlices", "op", "CopySlices"),
        ("AccumulateGrad", "leaf", "AccumulateGrad"),
        ("BackwardHook", "op", "BackwardHook"),
        ("Backward0", "op", "Backward0"),
        ("std::", "op", "std::"),
        ("", "op", ""),
        ("MulBackward0", "custom", "MulBackward0"),
        ("MyBackward", "custom", "MyBackward"),
    ],
)
def test_the_short_name_of_an_operation(op: str, kind: Kind, expected: str) -> None:
    assert Node(0, op, kind).short_op == expected
    assert words.short_op(op) == expected or kind == "custom"


@pytest.mark.parametrize(
    ("names", "most", "expected"),
    [
        ([], {}, ""),
        (["a"], {}, "a"),
        (list("abcd"), {}, "a, b, c, d"),
        (list("abcde"), {}, "a, b, c, d and 1 more"),
        (list("abcde"), {"most": 2}, "a, b and 3 more"),
        (["a", "b", "a", "b"], {"most": 2}, "a, b"),
        (["", "a", ""], {}, "(no name), a"),
        ([str(number) for number in range(2_000)], {"most": 1}, "0 and 1,999 more"),
    ],
)
def test_names_in_a_list(names: list[str], most: dict[str, int], expected: str) -> None:
    assert words.listed(iter(names), **most) == expected


@pytest.mark.parametrize(
    ("name", "names", "expected"),
    [
        ("wieght", ["bias", "weight"], ["weight", "bias"]),
        ("weight", ["x", "weight", "x"], ["weight", "x"]),
        ("q", ["x", "y"], ["x", "y"]),
        ("q", [], []),
        # Only so much of a name is compared, and so many names; none is lost.
        ("a" * 10_000, ["b" * 10_000, "a" * 10_000], ["a" * 10_000, "b" * 10_000]),
    ],
)
def test_the_nearest_names_come_first(name: str, names: list[str], expected: list[str]) -> None:
    assert words.nearest(name, iter(names)) == expected


def test_of_too_many_names_none_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words, "MOST_COMPARED", 2)
    assert words.nearest("c", ["x", "c", "y", "c", "cc"]) == ["c", "x", "y", "cc"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        (" \n\n ", ""),
        ("one", "one"),
        ("\n  one  \n two", "one"),
        ("one\r\ntwo", "one"),
        ("one\u2028two", "one"),
    ],
)
def test_the_first_line(text: str, expected: str) -> None:
    assert words.first_line(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", ""), ("a", "a"), (" f(a,\n   b,\n\n  c) \n", "f(a, b, c)"), ("a  b\n", "a  b")],
)
def test_several_lines_become_one(text: str, expected: str) -> None:
    assert words.one_line(text) == expected
