"""The interactive page: one file that asks for nothing, and holds the report's own numbers."""

from __future__ import annotations

import base64
import gzip
import json
import re
from importlib import resources
from typing import Any

import msgspec
import pytest

from gradscope.model.report import Report
from gradscope.render import render
from tests.program import Program
from tests.reports import CASES, chain, small


def page(report: Report) -> str:
    text = render(report, "html")
    assert isinstance(text, str)
    return text


def packed(text: str) -> dict[str, Any]:
    """The data inside a page, as its viewer decodes it."""
    (data,) = re.findall(
        r'<script type="application/octet-stream" id="report">([^<]*)</script>', text
    )
    decoded = json.loads(gzip.decompress(base64.b64decode(data)))
    assert isinstance(decoded, dict)
    return decoded


def test_the_viewer_is_small() -> None:
    """It is in every page, and a page is sent by mail."""
    assets = resources.files("gradscope.render") / "assets"
    names = ("viewer.js", "viewer.css")
    assert sum(len((assets / name).read_bytes()) for name in names) <= 170_000


@pytest.mark.parametrize("case", CASES)
def test_it_asks_for_nothing(case: str) -> None:
    text = page(CASES[case]())
    assert "default-src 'none'" in text
    assert not re.search(r"(src|href)\s*=\s*[\"']", text.split("<body>")[0])
    assert len(re.findall("<script", text)) == len(re.findall("</script", text)) == 2


@pytest.mark.parametrize("case", CASES)
def test_it_holds_the_graph_and_every_gradient(case: str) -> None:
    report = CASES[case]()
    graph, data = report.graph, packed(page(report))
    strings = data["strings"]
    assert [strings[i] for i in data["nodes"]["op"]] == [node.op for node in graph.nodes]
    source, edges = 0, []
    for step, ahead, output, slot in zip(
        *(data["edges"][name] for name in ("source", "ahead", "output", "slot")), strict=True
    ):
        source += step
        edges.append((source, slot, source + ahead, output))
    assert edges == [(e.source, e.slot, e.target, e.output) for e in graph.edges]
    for told, backward in zip(data["passes"], report.passes, strict=True):
        assert told["edges"] == list(backward.edges)
        assert told["upstream"] == [list(row) for row in backward.upstream]
        for norm, info in zip(told["norm"], backward.gradients, strict=True):
            if isinstance(info.norm, float):
                assert norm == pytest.approx(info.norm, rel=1e-5)
            else:
                assert norm == info.norm
        for node, share in told["cancelled"].items():
            along = zip(graph.edges, backward.edges, strict=True)
            parts = [told["norm"][entry] for edge, entry in along if edge.target == int(node)]
            total = told["norm"][backward.upstream[int(node)][0]]
            assert share == pytest.approx(1 - total / sum(parts), rel=1e-5)


@pytest.mark.parametrize("case", CASES)
def test_every_node_is_in_a_group_and_every_group_in_a_larger_one(case: str) -> None:
    data = packed(page(CASES[case]()))
    parents = data["groups"]["parent"]
    assert parents[0] == -1
    assert all(0 <= parent < group for group, parent in enumerate(parents) if group)
    assert set(data["nodes"]["group"]) <= set(range(len(parents)))


def test_equal_reports_make_equal_pages() -> None:
    assert page(small()) == page(small())


@pytest.mark.long
def test_very_many_nodes_take_few_bytes_each() -> None:
    report = chain(20_000, distinct=True)
    assert len(page(report)) < 60 * len(report.graph.nodes)


def test_a_line_says_which_modules_of_its_list_were_never_called() -> None:
    program = Program()
    x = program.leaf("x")
    for number in range(2):
        program.line = 7
        origin = program._origin("layer(x)", "")
        program.enter(f"layers.{number}", "Layer")
        program.calls[-1] = msgspec.structs.replace(program.calls[-1], origin=origin)
        x = program.op("MulBackward0", [(x, 1)], (1.0,), "2 * x")
        program.exit()
    report = program.report((x, (1.0,)))
    graph = msgspec.structs.replace(report.graph, absent=("layers.2", "heads.0"))
    text = render(msgspec.structs.replace(report, graph=graph), "html")
    assert isinstance(text, str)
    told = [[-1, "information", "not called: layers.2", origin, False, "", []]]
    assert packed(text)["calls"][0][6] == told
