"""Every invariant, broken one at a time; and what must pass although it looks odd."""

from __future__ import annotations

from typing import Any, get_args

import msgspec
import pytest

from gradscope.errors import ReportError
from gradscope.model.invariants import check
from gradscope.model.observations import Observations
from gradscope.model.plain import TensorInfo
from gradscope.model.report import (
    Accumulation,
    BackwardPass,
    Edge,
    GradientInfo,
    Graph,
    Leaf,
    Meta,
    ModuleCall,
    Node,
    Report,
    Root,
)
from gradscope.model.studies import Checks, LeafCheck
from tests.reports import small

replace = msgspec.structs.replace


def with_graph(**changes: Any) -> Report:
    report = small()
    return replace(report, graph=replace(report.graph, **changes))


def with_others(*others: Report) -> Report:
    return replace(small(), others=others)


def with_pass(**changes: Any) -> Report:
    report = small()
    return replace(report, passes=(replace(report.passes[0], **changes),))


def with_node(index: int, **changes: Any) -> Report:
    nodes = list(small().graph.nodes)
    nodes[index] = replace(nodes[index], **changes)
    return with_graph(nodes=tuple(nodes))


def with_edge(index: int, edge: Edge) -> Report:
    edges = list(small().graph.edges)
    edges[index] = edge
    return with_graph(edges=tuple(edges))


def with_gradient(info: GradientInfo) -> Report:
    return with_pass(gradients=(info, *small().passes[0].gradients[1:]))


OFF = Checks(leaves=(LeafCheck((99,), "wrong"),))
BROKEN = {
    "id": (with_node(3, id=4), "ids count from 0"),
    "origin": (with_node(3, origin=99), "not an index of graph.origins"),
    "call": (with_node(3, call=0), "not an index of graph.calls"),
    "call order": (with_graph(calls=(ModuleCall("a", "A", parent=0),)), "comes after its parent"),
    "edge up": (with_edge(0, Edge(2, 0, 1, 0)), "from a lower to a higher"),
    "edge to nowhere": (with_edge(0, Edge(0, 0, 99, 0)), "not an index of graph.nodes"),
    "slot twice": (with_edge(1, Edge(0, 0, 2, 0)), "input slot 0 of node 0"),
    "output": (with_edge(0, Edge(0, 0, 2, 1)), "no output 1"),
    "unreachable": (with_edge(1, Edge(0, 1, 3, 0)), "no edge leads to it"),
    "root": (with_graph(roots=(Root(99, 0),)), "graph.roots.node: 99"),
    "no leaf": (with_node(8, kind="op"), "are not the nodes of kind leaf"),
    "unlisted leaf": (with_graph(leaves=small().graph.leaves[:2]), "kind leaf, each once"),
    "leaf twice": (with_graph(leaves=(*small().graph.leaves, small().graph.leaves[0])), "once"),
    "values": (with_node(3, outputs=(TensorInfo((3,), "float32", values=(1.0,)),)), "needs 3"),
    "ragged": (with_node(3, outputs=(TensorInfo((-1,), "float32", values=(1.0,)),)), "how many"),
    "edge table": (with_pass(edges=()), "has 0 entries"),
    "upstream": (with_pass(upstream=((), *small().passes[0].upstream[1:])), "has 0 entries"),
    "seed": (with_pass(seeds=(99,)), "not an index"),
    "altered": (with_pass(altered=(99,)), "not an index"),
    "accumulation": (with_pass(accumulations=(Accumulation(99),) * 3), "not an index"),
    "silent norm": (with_gradient(GradientInfo("none", 1.0)), "still has numbers"),
    "zero norm": (with_gradient(GradientInfo("zero", 1.0)), "is zero with norm"),
    "finite nan": (with_gradient(GradientInfo("finite", 1.0, nan=2)), "with 2 NaN"),
    "uncounted": (with_gradient(GradientInfo("non-finite", "NaN")), "with 0 NaN"),
    "nan": (with_gradient(GradientInfo("finite", "NaN")), "is finite with norm NaN"),
    "another graph": (with_others(with_node(3, id=4)), "others[0].graph.nodes[3]"),
    "others of others": (with_others(with_others(small())), "none themselves"),
    "checks": (replace(small(), checks=OFF), "checks.leaves.leaves: 99 is not an index of"),
    "not so zero": (with_gradient(GradientInfo("zero", 0, values=(0.0, 1.0))), "values are finite"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_invariant_is_named_in_one_line(name: str) -> None:
    report, expected = BROKEN[name]
    with pytest.raises(ReportError) as caught:
        check(report)
    assert expected in caught.value.what
    assert "\n" not in caught.value.what


def fan_in(total: GradientInfo, *parts: GradientInfo, **changes: Any) -> Report:
    """A leaf that is used as often as there are parts, and what it is said to have received in
    total."""
    tensor = TensorInfo((2,), "float32")
    nodes = (Node(0, "Sum", outputs=(tensor,)), Node(1, "AccumulateGrad", "leaf", (tensor,)))
    graph = Graph(
        nodes=nodes,
        edges=tuple(Edge(0, slot, 1, 0) for slot in range(len(parts))),
        leaves=(Leaf(1, ("x",), tensor),),
        roots=(Root(0, 0),),
    )
    seed = GradientInfo("finite", 1.0)
    backward = BackwardPass(
        gradients=(seed, total, *parts),
        edges=tuple(range(2, 2 + len(parts))),
        upstream=((0,), (1,)),
        seeds=(0,),
        accumulations=(Accumulation(1),),
        **changes,
    )
    return Report(graph=graph, meta=Meta("0"), passes=(backward,))


def info(*values: float, dtype: str = "float32") -> GradientInfo:
    """A finite gradient with known values."""
    norm = sum(value * value for value in values) ** 0.5
    return GradientInfo("finite" if any(values) else "zero", norm, dtype=dtype, values=values)


def size(norm: float, dtype: str = "float32") -> GradientInfo:
    """A finite gradient of which only the norm is known."""
    return GradientInfo("finite", norm, dtype=dtype)


NONE, MISSING = GradientInfo("none"), GradientInfo("not reached")
NAN = GradientInfo("non-finite", "NaN", nan=1)

HOLDS = {
    "exact": fan_in(info(3, 4), info(1, 1), info(2, 3)),
    "rounded": fan_in(info(0.3, 0.1), info(0.1, 0.1), info(0.2000001, 1e-9)),
    "cancelled": fan_in(info(0.0625, 1.0), info(1e6, 1.0), info(-1e6, 0.0)),
    "to zero": fan_in(info(0, 0), info(1, 1), info(-1, -1)),
    "bfloat16": fan_in(info(3.02, 1, dtype="bfloat16"), info(1, 1), info(2, 0)),
    "undefined ignored": fan_in(info(1, 1), info(1, 1), NONE),
    "all undefined": fan_in(NONE, NONE, NONE),
    "unreached": fan_in(MISSING, MISSING, MISSING),
    "norms": fan_in(size(5), size(3), size(4)),
    "norm cancelled": fan_in(size(1), size(3), size(4)),
    "overflow": fan_in(GradientInfo("non-finite", "Infinity", inf=1), size(6e4), size(6e4)),
    "nan stays": fan_in(NAN, NAN, info(1, 1)),
    "altered": fan_in(info(9, 9), info(1, 1), altered=(1,)),
    "stopped": fan_in(MISSING, info(1, 1), error="RuntimeError"),
    "meta": fan_in(GradientInfo("finite"), GradientInfo("finite"), size(1)),
    "norm overflow": fan_in(GradientInfo("finite", "Infinity"), GradientInfo("finite", "Infinity")),
}

FAILS = {
    "values": fan_in(info(3, 5), info(1, 1), info(2, 3)),
    "silent": fan_in(NONE, info(1, 1)),
    "unreached": fan_in(MISSING, info(1, 1)),
    "from nothing": fan_in(info(1, 1), NONE),
    "undefined from unreached": fan_in(NONE, MISSING),
    "zeros": fan_in(size(1), info(0, 0), info(0, 0)),
    "healed": fan_in(size(1), NAN, size(1)),
    "one overflow": fan_in(NAN, size(1)),
    "one norm": fan_in(size(1.1), size(1)),
    "too large": fan_in(size(8), size(3), size(4)),
    "too small": fan_in(size(0.5), size(3), size(4)),
}


@pytest.mark.parametrize("name", HOLDS)
def test_sums_that_hold(name: str) -> None:
    check(HOLDS[name])


@pytest.mark.parametrize("name", FAILS)
def test_sums_that_do_not_hold(name: str) -> None:
    with pytest.raises(ReportError, match=r"passes\[0\]\.upstream\[1\]\[0\].* not the sum"):
        check(FAILS[name])


def test_what_is_named_like_an_index_is_one() -> None:
    # A count of that name would be held against the length of a table.
    named = {"node", "origin", "used", "made", "switched", "leaf"}
    for field in msgspec.structs.fields(Observations):
        for struct in structs_in(field.type):
            counts = {one.name for one in msgspec.structs.fields(struct) if one.default == 0}
            assert not counts & named, struct


def structs_in(kind: Any) -> list[type[msgspec.Struct]]:
    """The records that a field of this type holds itself."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return [kind]
    return [struct for one in get_args(kind) for struct in structs_in(one)]
