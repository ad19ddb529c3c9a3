"""The tree and what all formats share: golden texts, budgets, hostile names, no recursion."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given
from rich.cells import cell_len

from gradscope.errors import OutputError, ReportError
from gradscope.escaping import visible
from gradscope.formats import FORMATS
from gradscope.model.report import Report
from gradscope.render import Options, format_for, render
from gradscope.render.words import numbers
from gradscope.render.words.text import wrapped
from gradscope.simplify import Folding
from tests.fuzz.process import ran
from tests.goldens import compare
from tests.program import Program
from tests.reports import CASES, chain, doublings, scalars, small, transformer
from tests.test_simplify import programs

ALL = Folding(all=True)
NARROW = ("small", "transformer", "states", "hostile", "scalars")


def tree(report: Report, **options: object) -> str:
    text = render(report, "tree", msgspec.convert(options, Options))
    assert isinstance(text, str)
    return text


@pytest.mark.parametrize("case", CASES)
def test_tree_at_full_width(case: str) -> None:
    compare(f"tree/{case}.txt", tree(CASES[case](), saved=case == "saved"))


@pytest.mark.parametrize("width", [60, 40])
@pytest.mark.parametrize("case", NARROW)
def test_tree_in_a_narrow_terminal(case: str, width: int) -> None:
    text = tree(CASES[case](), width=width)
    compare(f"tree/{case}-{width}.txt", text)
    assert max(map(cell_len, text.splitlines())) <= width


@pytest.mark.parametrize("case", NARROW)
def test_tree_in_ascii(case: str) -> None:
    text = tree(CASES[case](), unicode=False, width=80)
    compare(f"tree/{case}-ascii.txt", text)
    assert text.isascii()


def test_tree_with_more_than_unasked() -> None:
    compare("tree/doublings-all.txt", tree(doublings(), folding=ALL))
    compare("tree/transformer-depth-3.txt", tree(transformer(2), folding=Folding(depth=3)))
    compare("tree/small-values.txt", tree(small(), values=True, width=130))


@pytest.mark.parametrize("case", ["small", "states"])
def test_json_is_the_saved_form(case: str) -> None:
    found = render(CASES[case](), "json")
    assert isinstance(found, bytes)
    compare(f"json/{case}.json", found.decode())


@pytest.mark.parametrize("width", [200, 100, 80, 60, 50, 40])
@pytest.mark.parametrize("case", ["small", "traced", "doublings"])
def test_a_number_is_never_cut(case: str, width: int) -> None:
    """Every number in a narrow tree is one of those in a wide one."""

    def found(text: str) -> set[str]:
        rows = [line[line.index("]") :] if "]" in line else line for line in text.splitlines()[2:]]
        return set(re.findall(r"-?\d+\.\d+(?:e-?\d+)?", "\n".join(rows)))

    assert found(tree(CASES[case](), width=width)) <= found(tree(CASES[case](), width=300))


@pytest.mark.parametrize("lines", [12, 20, 30, 40, 80])
@pytest.mark.parametrize("deep", [False, True])
def test_the_budget_is_kept_and_what_is_missing_is_counted(deep: bool, lines: int) -> None:
    report = chain(500, distinct=True) if deep else transformer()
    # The way to a leaf is drawn block by block.
    path = None if deep else "gpt.wte.weight"
    text = tree(report, lines=lines, folding=Folding(depth=9, path=path))
    assert text.count("\n") <= lines
    (more,) = re.findall(r"… ([\d,]+) more nodes?", text)
    assert int(more.replace(",", "")) > 50


def test_rows_of_what_is_drawn_above_are_counted_where_they_are_left_out() -> None:
    program = Program()
    leaves = [program.leaf(name) for name in "abcdefgh"]
    deep = leaves[0]
    for number in range(48):
        names = [(deep, 1.0), *[(leaves[number % 8], 1.0)] * (number < 8)]
        deep = program.op(f"Op{number}Backward0", names, (1.0,), f"step{number}(x)")
    wide = program.op("StackBackward0", [(leaf, 1.0) for leaf in leaves], (1.0,), "penalty")
    loss = program.op("AddBackward0", [(deep, 1.0), (wide, 1.0)], (1.0,), "loss")
    report = program.report((loss, (1.0,)))

    def drawn(lines: int) -> tuple[int, int, str]:
        rows = tree(report, lines=lines).split("\n\n")[0].splitlines()
        start = next(at for at, row in enumerate(rows) if row.startswith("node"))
        more = re.fullmatch(r"… (\d+) more (node|row)s?: --all", rows[-1])
        shown = len(rows) - start - 1
        return (shown - 1, int(more[1]), more[2]) if more else (shown, 0, "")

    everything, nothing, _ = drawn(500)
    assert nothing == 0
    nouns = set()
    for lines in range(12, everything + 30):
        shown, left, noun = drawn(lines)
        nouns.add(noun)
        assert shown + left == everything if noun != "node" else shown < everything
    assert nouns == {"node", "row", ""}


def test_a_tree_says_what_goes_on_to_the_next_round_unless_it_comes_last() -> None:
    program = Program()
    x = program.leaf("x")
    for number in range(16):
        program.enter(f"blocks.{number}", "Block")
        inner = program.op("TanhBackward0", [(x, 0.5)], (1.0,), "tanh(x)")
        both = program.op("AddBackward0", [(x, 1.0), (inner, 1.0)], (1.0,), "x + tanh(x)")
        x = program.op("MulBackward0", [(both, 0.5)], (1.0,), "0.5 * x")
        program.exit()
    rows = tree(program.report((x, (1.0,)))).splitlines()
    inside = [row for row in rows if row.lstrip("├─└│ ").startswith("┊")]
    (place,) = [at for at, row in enumerate(inside) if "to the next round" in row]
    assert "○ Add" in inside[place - 1] and "○ Tanh" in "".join(inside[place:])
    # 0.5 in the last round, 0.75 of that in each before; the first has no round before it.
    assert inside[place].endswith(f"to the next round: ‖g‖ {0.5 * 0.75**14:.4g}–0.5")


@pytest.mark.parametrize("lines", [24, 30, 40])
def test_a_tree_opens_less_before_it_is_cut(lines: int) -> None:
    text = tree(transformer(), lines=lines)
    assert "more nodes" not in text and "gpt.wpe" in text
    assert ("▾ gpt.h.* Block ×12" in text) is (lines > 24)


def test_operations_in_a_long_row_are_drawn_to_the_last() -> None:
    text = tree(chain(5_000, distinct=True), folding=ALL)
    assert text.count("○ Neg") == 4_999
    assert "chain.py:2\n" in text
    assert "5,001 nodes" in text


def test_a_deep_network_stays_on_one_level() -> None:
    text = tree(transformer(48), folding=ALL, width=160)
    assert "gpt.h.0.attn.c_fc.weight" in text
    assert max(line.index("○") for line in text.splitlines() if "○" in line) <= 2


def test_levels_beyond_the_last_are_counted_instead_of_drawn() -> None:
    program = Program()
    x = program.leaf("x")
    sides = [program.op("SinBackward0", [(x, 1)], (1,), "sin(x)") for _ in range(40)]
    last = sides[0]
    for side in sides[1:]:
        # Two inputs with inputs of their own: no chain that could stay on its level.
        deeper = program.op("ExpBackward0", [(last, 1)], (1,), "exp(y)")
        last = program.op("AddBackward0", [(deeper, 1), (side, 1)], (1,), "y + side")
    text = tree(program.report((last, (1.0,))), folding=ALL, width=120)
    assert "…20 │" in text
    assert max(line.index("○") for line in text.splitlines() if "○" in line) < 40


def test_colour_is_only_colour() -> None:
    colored = tree(small(), color=True)
    assert "\x1b[" in colored
    assert re.sub(r"\x1b\[[\d;]*m", "", colored) == tree(small())


@given(programs())
def test_any_graph_can_be_drawn_whole(report: Report) -> None:
    text = tree(report, folding=ALL)
    assert "more node" not in text
    drawn = sum(bool(re.search("[◇○●↪]", line)) for line in text.split("\n\n")[0].splitlines())
    assert drawn == len(report.graph.edges) + len(report.graph.roots)


def test_visible_keeps_what_is_only_text() -> None:
    for text in ("x", "größe", "名前", "שלום", "👩‍💻", "a b"):
        assert visible(text) == text
    assert visible("a\nb\tc\ud800") == "a\\nb\\tc\\ud800"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("  ", []),
        ("one", ["one"]),
        ("a word that fits and the rest", ["a word that fits and", "the rest"]),
        ("two  blanks stay  inside a line", ["two  blanks stay", "inside a line"]),
        # Numbers in brackets stay together, and = with what follows.
        ("the sum is now [1, 2, 3] here", ["the sum is now", "[1, 2, 3] here"]),
        ("0.5 x 0.25 + 1 x 2 = 2.125", ["0.5 x 0.25 + 1 x 2", "= 2.125"]),
        ("[1, 2, 3, 4, 5, 6, 7, 8, 9]", ["[1, 2, 3, 4, 5, 6,", "7, 8, 9]"]),
        # A word is cut where it is longer than a line, and a wide character has two cells.
        ("see " + "x" * 25, ["see", "x" * 20, "x" * 5]),
        ("字" * 12, ["字" * 10, "字" * 2]),
        ("字 " * 8, ["字 字 字 字 字 字 字", "字"]),
    ],
)
def test_a_paragraph_in_twenty_cells(text: str, expected: list[str]) -> None:
    assert wrapped(text, 20) == expected
    assert wrapped(text, 3) == expected  # none is narrower


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.1, "0.1"),
        (1.0, "1"),
        (0.0, "0"),
        (-2.0, "-2"),
        (1 / 60, "0.01667"),
        (1.25e-5, "1.25e-5"),
        (0.0001, "0.0001"),
        (102.4, "102.4"),
        (1024.0, "1024"),
        (12345.678, "12346"),
        (999_999.0, "999999"),
        (1e6, "1e6"),
        (123_456_789.0, "1.235e8"),
        (-1e-30, "-1e-30"),
        ("NaN", "nan"),
        ("-Infinity", "-inf"),
    ],
)
def test_numbers(value: float, expected: str) -> None:
    assert numbers.number(value) == expected


@pytest.mark.parametrize(
    ("values", "shape", "dtype", "expected"),
    [
        ((3.0,), (), "float32", "3"),
        ((1.0, 2.0), (2,), "float32", "[1, 2]"),
        ((1.0, 2.0, 3.0, 4.0), (2, 2), "float32", "[[1, 2], [3, 4]]"),
        ((2.0, 2.0), (1, 2), "float64", "[[2, 2]]"),
        ((1.0, 2.0), (), "complex64", "1+2j"),
        ((1.0, -2.0, 0.0, "NaN"), (2,), "complex64", "[1-2j, 0+nanj]"),
        ((), (0,), "float32", "[]"),
        ((1.0, 2.0, 3.0), (1,), "float32", "[1, 2, 3]"),
        # A fifth digit where it is the last, and noise is none.
        ((1.1001, -33.003, 1.00498756), (3,), "float32", "[1.1001, -33.003, 1.005]"),
        ((0.1 + 1 + 0.0001, 12345.5, 1.0001e-7), (3,), "float64", "[1.1001, 12346, 1.0001e-7]"),
    ],
)
def test_tensors(
    values: Sequence[float], shape: tuple[int, ...], dtype: str, expected: str
) -> None:
    assert numbers.tensor(values, shape, dtype) == expected


@pytest.mark.parametrize(
    ("digits", "expected"),
    [(1, "[0.3, 12346, 2e-7]"), (15, "[0.333333333333333, 12345.678, 2e-7]")],
)
def test_as_many_digits_as_were_asked_for(digits: int, expected: str) -> None:
    with numbers.precise(digits):
        assert numbers.tensor((1 / 3, 12345.678, 2e-7), (3,), "float64") == expected


def test_a_long_tensor_loses_whole_numbers() -> None:
    text = numbers.tensor([i + 0.125 for i in range(100)], (10, 10), "float32", room=30)
    assert text == "[[0.125, 1.125, 2.125, …]]"


def test_suffixes_name_formats() -> None:
    names = ("a.svg", "b.JSON.GZ", "c.d.dot", "e.gv", "f.pdf", "g.txt")
    assert [format_for(name) for name in names] == ["svg", "json", "dot", "dot", "pdf", "text"]
    for unknown in ("a", "a.xyz", "svg", ".gz"):
        with pytest.raises(OutputError) as caught:
            format_for(unknown)
        assert ".svg" in caught.value.hint


@pytest.mark.parametrize("format", ["svgg", "findings", "__init__", "../formats/svg", ""])
def test_an_unknown_format_is_answered_with_the_known_ones(format: str) -> None:
    with pytest.raises(OutputError, match=f"no format {re.escape(format)}") as caught:
        render(small(), format)
    assert all(name in caught.value.hint for name in FORMATS)


def test_a_backward_call_that_is_not_there_is_an_error() -> None:
    assert "3 + 3 = 6" in tree(scalars(), call=2)
    with pytest.raises(ReportError, match="no backward call 7"):
        tree(scalars(), call=7)


@pytest.mark.parametrize("term", ["xterm", "linux"])
def test_in_16_colours_nothing_is_written_in_a_colour_of_the_ground(term: str) -> None:
    program = """
from gradscope.render import Options, render
from tests.reports import CASES
for make in CASES.values():
    for format in ("tree", "table"):
        print(render(make(), format, Options(width=120, color=True)))
"""
    done = ran([sys.executable, "-c", program], TERM=term, COLORTERM="", NO_COLOR="")
    styles = re.findall(r"\x1b\[([\d;]*)m", done.stdout)
    codes = {code for style in styles for code in style.split(";")}
    assert codes >= {"1", "2", "36"}
    # Nor in yellow, which is lost on white.
    assert not codes & {"30", "33", "37", "38", "48", "90", "93", "97"}
    # What is not finite is magenta, as in pictures.
    assert "35" in codes
