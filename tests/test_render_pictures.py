"""Pictures: their DOT text, that SVG is sound XML, and what happens where Graphviz is missing."""

from __future__ import annotations

import importlib.util
import math
import re
import shutil
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import msgspec
import pytest

from gradscope.errors import GradscopeError, ToolMissing
from gradscope.model.report import Origin, Report
from gradscope.render import Options, as_text, render, save
from gradscope.render.drawing.graphviz import draw
from gradscope.render.drawing.scene import Scene
from gradscope.render.formats.dot import MOST_ITEMS
from gradscope.simplify import Folding
from tests.goldens import compare
from tests.looking import Session
from tests.program import Program
from tests.reports import CASES, chain, decaying, hostile, layers, small, towers, transformer, unet

ALL = Folding(all=True)
SVG = "{http://www.w3.org/2000/svg}"
MAGIC = [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")]
HAS_PACKAGE = importlib.util.find_spec("pygraphviz") is not None
needs_graphviz = pytest.mark.skipif(
    not HAS_PACKAGE and shutil.which("dot") is None, reason="Graphviz is not installed"
)


def dot(report: Report, options: Options | None = None) -> str:
    text = render(report, "dot", options)
    assert isinstance(text, str)
    return text


def svg(report: Report, options: Options | None = None) -> ElementTree.Element:
    picture = render(report, "svg", options)
    assert isinstance(picture, bytes)
    return ElementTree.fromstring(picture)


def words(picture: ElementTree.Element) -> list[str]:
    """All texts of an SVG that are drawn, without the blanks Graphviz puts into them."""
    texts = picture.iter(f"{SVG}text")
    return [(text.text or "").replace("\xa0", " ").strip() for text in texts]


@pytest.mark.parametrize("case", [*CASES, "unet", "towers"])
def test_dot_text(case: str) -> None:
    make = {**CASES, "unet": unet, "towers": towers}[case]
    compare(f"dot/{case}.dot", dot(make()))


@needs_graphviz
def test_the_two_sides_of_a_unet_stand_beside_each_other() -> None:
    source = dot(unet())
    places = {}
    for line in draw(source, "plain").decode().splitlines():
        kind, *facts = line.split()
        if kind == "node":
            places[facts[0]] = float(facts[1]), float(facts[2])
    view = Scene.at_once(unet(), Options()).view
    assert view.sides and "down, and up again on the left" in source
    for link in (view.links[n] for n in view.sides.across):
        (right, height), (left, other) = (places[str(end)] for end in (link.source, link.target))
        assert left < right and height == other
    for link in view.links:
        if {link.source, link.target} <= view.sides.up:
            assert places[str(link.source)][1] < places[str(link.target)][1]


@needs_graphviz
def test_leaves_of_the_two_sides_stand_outside_of_what_leads_across(session: Session) -> None:
    report = session.look("""
        import torch
        a, b, c, d, e = (torch.nn.Linear(4, 4) for _ in range(5))
        high = torch.relu(a(torch.ones(3, 4)))
        low = torch.relu(b(high))
        e(torch.relu(d(torch.relu(c(low)) + low)) + high).square().mean().backward()
    """)
    view = Scene.at_once(report, Options()).view
    assert view.sides
    drawn = [line.split() for line in draw(dot(report), "plain").decode().splitlines()]
    boxes = [(name, float(x), float(y)) for kind, name, x, y, *_ in drawn[1:-1] if kind == "node"]
    places = {name: (x, y) for name, x, y in boxes}
    for link in (view.links[n] for n in view.sides.across):
        (right, height), (left, _) = (places[str(end)] for end in (link.source, link.target))
        assert not [x for _, x, y in boxes if y == height and left < x < right]
    # A link on the way up begins, where Graphviz ends it, at the top of its box.
    up = {str(item) for item in view.sides.up}
    edges = [line for line in drawn if line[0] == "edge" and {*line[1:3]} <= up]
    assert len(edges) > 6
    for _, _, source, many, *points in edges:
        assert float(points[2 * int(many) - 1]) > places[source][1]


def test_a_weight_that_its_module_transposes_has_no_box_for_it(session: Session) -> None:
    report = session.look(
        """
        import torch
        w = torch.ones(2, 3, requires_grad=True)
        net = torch.nn.Linear(3, 2)
        x = torch.ones(4, 3, requires_grad=True)
        y = net(x) + x @ w.t()
        (y.tanh().sum() + net.weight.sum()).backward()
        """
    )

    def texts(folding: Folding) -> str:
        return " ".join(re.sub("<[^>]*>", " ", dot(report, Options(folding=folding))).split())

    drawn = texts(Folding())
    assert "w.t()" in drawn and "transposed · ‖g‖" in drawn and "T net(x)" not in drawn
    assert "T net(x)" in texts(ALL) and "transposed" not in texts(ALL)
    # Of what stands on the arrows into a leaf only its sum is its gradient.
    for place, leaf in enumerate(report.graph.leaves):
        norm = report.passes[0].brought(place).norm
        if leaf.name in ("weight", "w"):
            assert re.search(
                rf"{leaf.name} leaf \[2,3\] (· used ×\d )?grad ‖g‖ {norm:.4g} (in all )?", drawn
            )


def test_a_transposition_whose_gradient_a_hook_alters_keeps_its_box(session: Session) -> None:
    report = session.look("""
        import torch
        net = torch.nn.Linear(3, 2)
        y = net(torch.ones(4, 3))
        transposition = y.grad_fn.next_functions[2][0]
        transposition.register_prehook(lambda gradients: (10 * gradients[0],))
        y.sum().backward()
    """)
    drawn = re.sub("<[^>]*>", "", dot(report))
    assert "changed by a hook" in drawn and "transposed" not in drawn


def test_a_picture_is_no_taller_than_can_be_looked_at(session: Session) -> None:
    path = session.write("""
        import torch
        from torch import nn
        kinds = nn.Tanh, nn.GELU, nn.Sigmoid, nn.SiLU, nn.Softplus, nn.ELU, nn.Mish, nn.Softsign
        stages = (nn.Sequential(*(kind() for kind in kinds[:many])) for many in (8, 7, 6, 5, 4))
        net = nn.Sequential(nn.Linear(4, 4), *(nn.Sequential(nn.ReLU(), one) for one in stages))
        net(torch.ones(2, 4)).sum().backward()
        """)
    boxes = re.findall(
        r"<B>([\w.]+)</B>", session.cli("backward", str(path), "--format", "dot").out
    )
    assert [one for one in boxes if one.endswith(".1")] == [
        f"{stage}.1" for stage in range(5, 0, -1)
    ]
    assert len(boxes) <= 16 and "Tanh" not in boxes


@needs_graphviz
def test_svg_is_dark_for_its_reader_but_never_inside_a_page() -> None:
    (style,) = svg(small()).iter(f"{SVG}style")
    rule = r"\.edge text \{[^{}]*\} @media \(prefers-color-scheme: dark\) \{ svg:root \{[^{}]*\} \}"
    assert re.fullmatch(rule, style.text or "")


@needs_graphviz
@pytest.mark.parametrize("case", [*CASES, "unet"])
def test_svg_is_sound_and_every_item_has_a_tooltip(case: str) -> None:
    report = {**CASES, "unet": unet}[case]()
    picture = svg(report)
    classes = [group.get("class") for group in picture.iter(f"{SVG}g")]
    nodes = re.findall(
        r"^\t+(?:\d+|(?:seed|whole|head|next)\d+|exit\w+) \[", dot(report), re.MULTILINE
    )
    assert classes.count("node") == len(nodes)
    tips = [link.get("{http://www.w3.org/1999/xlink}title") for link in picture.iter(f"{SVG}a")]
    assert sum(tip is not None and bool(tip.strip()) for tip in tips) >= len(nodes) - 1
    tags = {element.tag.rpartition("}")[2] for element in picture.iter()}
    known = "svg style g title polygon polyline path text a ellipse defs stop linearGradient rect"
    assert tags <= {*known.split()}
    # A browser leaves out blanks at their ends, and stretches the rest into their room.
    texts = [text.text or "" for text in picture.iter(f"{SVG}text")]
    assert texts and [text for text in texts if text != text.strip()] == []


@pytest.mark.parametrize(("rounds", "copies"), [(5, 1), (50, 50)])
def test_a_shared_leaf_of_a_large_picture_is_drawn_at_every_use(rounds: int, copies: int) -> None:
    program = Program()
    x, w = program.leaf("x"), program.leaf("shared")
    for number in range(2 * rounds):
        inputs = [(x, 1.0), (w, 1.0)] if number % 2 else [(x, 1.0)]
        x = program.op(f"Step{number}Backward0", inputs, (1.0,))
    text = dot(program.report((x, (1.0,))), Options(folding=ALL))
    assert text.count("<B>shared</B>") == copies
    assert f"used ×{rounds}" in text


def test_too_many_boxes_are_refused_with_a_way_out() -> None:
    with pytest.raises(GradscopeError) as caught:
        dot(chain(MOST_ITEMS + 1), Options(folding=ALL))
    for way in ("--depth N", "--focus GLOB", "--path LEAF", ".html"):
        assert way in caught.value.hint
    dot(chain(20_000))


@needs_graphviz
@pytest.mark.parametrize(("format", "magic"), MAGIC)
def test_pictures_are_what_they_are_called_and_come_out_the_same(format: str, magic: bytes) -> None:
    first = render(small(), format)
    assert isinstance(first, bytes)
    assert first.startswith(magic)
    again = render(small(), format)
    assert isinstance(again, bytes)
    # Older versions of Graphviz's PDF library write the time of day.
    date = re.compile(rb"/CreationDate \([^)]*\)")
    assert date.sub(b"", again) == date.sub(b"", first)


@pytest.mark.skipif(not HAS_PACKAGE, reason="pygraphviz is not installed")
@pytest.mark.parametrize(("format", "magic"), MAGIC)
def test_without_dot_the_package_draws(
    format: str, magic: bytes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.chdir(tmp_path)
    # A file of the user's with that name must not get in the way.
    (tmp_path / "pygraphviz.py").write_text("raise SystemExit('the wrong one')")
    picture = render(hostile(), format)
    assert isinstance(picture, bytes)
    assert picture.startswith(magic)


def test_without_graphviz_the_dot_text_is_left_beside(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GRADSCOPE_DOT", str(tmp_path / "nowhere"))
    wanted = tmp_path / "graph.svg"
    wanted.write_text("earlier")
    with pytest.raises(ToolMissing) as caught:
        save(small(), str(wanted), "svg")
    assert caught.value.status == 3
    assert wanted.read_text() == "earlier"
    assert (tmp_path / "graph.svg.dot").read_text() == dot(small())
    for way in ("gradscope-torch[dot]", "apt/brew install graphviz", ".json file", "graph.svg.dot"):
        assert way in caught.value.hint


def test_a_failing_dot_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "dot"
    broken.write_text("#!/bin/sh\necho warning >&2\necho 'no such plugin' >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("GRADSCOPE_DOT", str(broken))
    with pytest.raises(GradscopeError, match="Graphviz failed: no such plugin"):
        render(small(), "svg")


@needs_graphviz
@pytest.mark.parametrize(
    ("case", "page"), [("small", (842, 595)), ("transformer", (595, 842)), ("wide", (842, 595))]
)
def test_a_pdf_is_one_page_of_a4_that_lies_as_the_drawing_does(
    case: str, page: tuple[int, int]
) -> None:
    report = wide() if case == "wide" else CASES[case]()
    picture = render(report, "pdf", Options(folding=ALL) if case == "wide" else None)
    assert isinstance(picture, bytes)
    assert re.findall(rb"/MediaBox \[ ?0 0 (\d+) (\d+)", picture) == [
        tuple(str(size).encode() for size in page)
    ]


@needs_graphviz
def test_a_png_whose_text_would_be_shrunk_is_refused() -> None:
    with pytest.raises(
        GradscopeError, match=r"a PNG of 3\d,\d+ pixels could not be read"
    ) as caught:
        render(chain(510, distinct=True), "png", Options(folding=ALL))
    assert ".svg" in caught.value.hint and ".html" in caught.value.hint


@needs_graphviz
def test_siblings_are_wrapped_and_so_are_leaves() -> None:
    program = Program()
    x = program.leaf("x")
    ends = []
    for number in range(24):
        program.line = number + 1
        weight = program.leaf(f"w.{number}")
        ends.append((program.op(f"Op{number}Backward0", [(x, 1), (weight, 1)], (1.0,)), 1.0))
    stacked = program.report((program.op("StackBackward0", ends, (1.0,)), (1.0,)))
    for one in map(svg, (stacked, wide())):
        assert float(one.get("width", "")[:-2]) < 3 * float(one.get("height", "")[:-2])


def wide() -> Report:
    """A sum of many leaves."""
    program = Program()
    leaves = [(program.leaf(f"x{number}"), 1.0) for number in range(20)]
    return program.report((program.op("StackBackward0", leaves, (1.0,)), (1.0,)))


@needs_graphviz
def test_the_river_stands_beside_a_picture_that_is_not_small() -> None:
    picture = svg(transformer())
    (river,) = picture.findall(f".//{SVG}g[@class='river']")
    assert (river.findtext(f"{SVG}title") or "").startswith("median ‖g‖ from the loss on, ")
    left = float(picture.get("viewBox", "").split()[0])
    assert left < 0 and f"translate({left + 18:g} " in river.get("transform", "")
    assert {"gpt.h.0", "gpt.h.11"} <= set(words(river))
    assert not svg(small()).findall(f".//{SVG}g[@class='river']")
    # What has no strip of its own has bars in its caption.
    assert "from the loss on" in dot(transformer()) and "from the loss on" not in dot(small())


@needs_graphviz
def test_a_repeat_shows_a_bar_for_every_round_and_names_the_extremes() -> None:
    report = transformer(48)
    text = dot(report)
    (label,) = re.findall(r"whole0 \[label=<(.*gpt\.h\.\*.*)>", text)
    assert label.count('WIDTH="6" HEIGHT="24"') == 40  # as many as fit
    # What is inside stands beside it, and no arrow that is seen leads in or out.
    (frame,) = re.findall(r"subgraph cluster0 \{(.*?)\n\t\}", text, re.DOTALL)
    inside = set(re.findall(r"^\t+(\w+)", frame, re.MULTILINE))
    arrows = [line for line in text.splitlines() if "->" in line and "style=invis" not in line]
    ends = [re.findall(r'"?(\w+)(?::\w+)?"? ->  ?"?(\w+)', line)[0] for line in arrows]
    assert [pair for pair in ends if (pair[0] in inside) != (pair[1] in inside)] == []
    assert {"whole0", "head0"} <= {end for pair in ends for end in pair}
    found = words(svg(report))
    assert "×48" in found and any(
        re.match("largest .* in h.0 · smallest .* in h.47", w) for w in found
    )


@needs_graphviz
def test_what_is_in_each_round_has_a_layout_of_its_own_in_a_frame() -> None:
    picture = svg(transformer())
    boxes = {name: [*_boxes(picture, name)] for name in ("cluster", "node", "edge")}
    ((left, top, right, bottom),) = boxes["cluster"]
    for x, y, end, low in boxes["node"] + boxes["edge"]:
        assert end < left or (left < x and end < right and top < y and low < bottom)
    # The way beside it is no longer for what stands there.
    way = [box for box in boxes["node"] if box[2] < left]
    gaps = [below[1] - above[3] for above, below in pairwise(sorted(way, key=lambda one: one[1]))]
    assert len(gaps) > 2 and max(gaps) < 50


def _boxes(picture: Element, name: str) -> Iterator[tuple[float, float, float, float]]:
    """The ends of each drawn part of a kind: left, top, right and bottom."""
    for part in picture.iterfind(f".//{SVG}g[@class='{name}']"):
        drawn = [one for one in part.iter() if "points" in one.attrib or "d" in one.attrib]
        text = " ".join(one.get("points", "") + one.get("d", "") for one in drawn)
        numbers = [float(one) for one in re.findall(r"-?[\d.]+", text)]
        if numbers:
            xs, ys = numbers[::2], numbers[1::2]
            yield min(xs), min(ys), max(xs), max(ys)


@pytest.mark.parametrize("rounds", [64, 65, 120, 121, 128, 129, 192, 193, 500, 1000])
@pytest.mark.parametrize("program", [layers, decaying])
def test_many_rounds_take_no_more_room_than_few(
    program: Callable[[int], Report], rounds: int
) -> None:
    few, many = program(40), program(rounds)
    for format in ("tree", "dot"):
        before, now = (as_text(one, format).count("\n") for one in (few, many))
        # The exceptions of a strip may need a line, and that it vanishes.
        assert now <= before + 2, format


@pytest.mark.parametrize("format", ["tree", "dot"])
def test_it_is_said_from_which_round_on_next_to_nothing_arrives(format: str) -> None:
    # 0.9 of it in each round: less than 1e-5 of 1 after 110.
    text = as_text(layers(200), format)
    said = "the gradient vanishes: under 1e-5 of its largest ‖g‖ from Linear 89 back to Linear 0"
    assert said in " ".join(text.split())
    assert "vanishes" not in as_text(layers(110), format)


@pytest.mark.parametrize(
    ("lines", "is_said"),
    [
        # Side by side: a small weight of one head is no end of what the others get.
        ("outs = [one(x) for one in net]", False),
        ("outs = []\nfor one in net: outs.append(one(outs[-1] if outs else x) * 1e-3)", True),
    ],
)
def test_that_it_vanishes_is_said_of_modules_in_a_row_only(
    lines: str, is_said: bool, session: Session
) -> None:
    path = session.write(
        "import torch\n"
        "net = [torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh()) for _ in range(4)]\n"
        f"x = torch.ones(4)\n{lines}\n"
        "sum(out.sum() * 1e-7 ** (3 - place) for place, out in enumerate(outs)).backward()\n"
    )
    drawn = session.cli("backward", str(path), "--depth", "1").out
    assert ("the gradient vanishes" in drawn) == is_said


@needs_graphviz
def test_texts_have_room_of_our_own_measure_and_are_fitted_into_it() -> None:
    """Another machine has other fonts, so no text may begin before the one before it ends."""
    for case in ("small", "transformer", "diagnosed"):
        picture = svg(CASES[case]())
        groups = [one for one in picture.iter(f"{SVG}g") if one.get("class") in ("node", "edge")]
        for group in groups:
            ends: dict[str, float] = {}
            for text in group.iterfind(f".//{SVG}text"):
                start, room = float(text.get("x", 0)), float(text.get("textLength", 0))
                assert text.get("lengthAdjust") == "spacingAndGlyphs" and room > 0
                line = text.get("y", "")
                assert start >= ends.get(line, -math.inf), text.text
                ends[line] = start + room


@needs_graphviz
@pytest.mark.parametrize("make", [small, transformer, unet])
def test_operands_go_from_left_to_right_as_in_the_expression(make: Callable[[], Report]) -> None:
    """The arrows that leave a box, by the places that Graphviz gave their middles."""
    source = dot(make())
    leaving = re.findall(r"^\t(\d+):(\d+) -> (\S+) ", source, re.MULTILINE)
    found: dict[tuple[str, str], list[float]] = {}
    for line in draw(source, "plain").decode().splitlines():
        kind, *facts = line.split()
        if kind == "edge":
            xs = [float(x) for x in facts[3 : 3 + 2 * int(facts[2]) : 2]]
            found.setdefault((facts[0], facts[1]), []).append(xs[len(xs) // 2])
    places: dict[str, list[tuple[int, float]]] = {}
    for tail, outlet, head in leaving:
        places.setdefault(tail, []).append((int(outlet), found[tail, head].pop(0)))
    assert places
    for ends in places.values():
        assert [x for _, x in sorted(ends)] == sorted(x for _, x in ends)


@needs_graphviz
def test_boxes_link_to_their_line_and_say_nothing_of_this_machine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    href = "{http://www.w3.org/1999/xlink}href"

    def links(file: str) -> set[str]:
        program = Program(file)
        x = program.leaf("x")
        program.line = 7
        y = program.op("MulBackward0", [(x, 1)], (1,), "x*2")
        picture = svg(program.report((y, (1.0,))))
        return {link for part in picture.iter(f"{SVG}a") if (link := part.get(href))}

    assert links("demo.py") == {"demo.py#L1", "demo.py#L7"}
    assert links(str(tmp_path / "a b" / "demo.py")) == {"a%20b/demo.py#L1", "a%20b/demo.py#L7"}
    assert "file:///lib/demo.py#L7" in links("/lib/demo.py")
    # What a name says is no address: not a script, not another machine.
    assert links("javascript:alert(1).py") == {
        f"javascript%3Aalert%281%29.py#L{line}" for line in (1, 7)
    }
    assert links("<string>") == set()


@pytest.mark.parametrize(
    ("factors", "ends"),
    [
        (
            [*[1, 2, 3, 4, 5, 6, 7] * 9, 1e-9],
            "‖g‖, log scale 0.03 300 · 1 gradient far below all others",
        ),
        # What vanishes step by step has its place, and so has what most gradients are.
        ([1, 1e-2, 1e-4, 1e-6, 1e-8, 1e-10, 1e-11, 1e-12], "‖g‖, log scale 1e-12 1"),
        ([1, *[1e-9] * 20], "‖g‖, log scale 1e-9 1"),
    ],
)
def test_what_is_far_below_all_else_sets_no_scale(
    factors: list[float], ends: str, session: Session
) -> None:
    terms = " + ".join(f"w[{place}] * {factor}" for place, factor in enumerate(factors))
    path = session.write(f"""
        import torch
        w = [torch.ones(1, requires_grad=True) for _ in range({len(factors)})]
        ({terms}).backward()
        """)
    drawn = session.cli("backward", str(path), "--all", "--format", "dot").out
    words = re.sub(r"<[^>]*>", " ", drawn)
    assert ends in " ".join(words.split()), " ".join(words.split())[:400]
    tree = session.cli("backward", str(path), "--all").out
    assert ("1 gradient far below all others" in tree) == ("others" in ends)


def test_the_line_of_the_user_comes_before_that_of_a_library() -> None:
    program = Program("/venv/lib/python3.12/site-packages/lib/loss_utils.py")
    program.line = 42
    loss = program.op("NllLossBackward0", [(program.leaf("w"), 2.0)], (1.0,), "cross_entropy(a, b)")
    report = program.report((loss, (1.0,)))
    origins = (*report.graph.origins, Origin("train.py", 7, "out.loss.backward()"))
    called = msgspec.structs.replace(report.passes[0], origin=len(origins) - 1)
    graph = msgspec.structs.replace(report.graph, origins=origins)
    report = msgspec.structs.replace(report, graph=graph, passes=(called,))
    text = as_text(report, "dot")
    assert text.index("out.loss.backward()") < text.index("train.py:7 · from loss_utils.py:42")
    assert "from" not in as_text(small(), "dot").split("gradients flow")[0]
