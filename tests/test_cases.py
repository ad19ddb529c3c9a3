"""The reference cases A1 to A18, through the command line, every number against torch.autograd."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
import torch

from tests.looking import Session, expressions, is_close, new_gradient, node_of, variables

EXAMPLES = Path(__file__).parent.parent / "examples"

Tensors = dict[str, torch.Tensor]


def leaves(**values: object) -> Tensors:
    """Float leaves."""
    return {
        name: torch.tensor(value, dtype=torch.float32, requires_grad=True)
        for name, value in values.items()
    }


def chain(start: object) -> Tensors:
    """A1 to A7: every variable of the chain."""
    t = leaves(a=start)
    t["b"] = t["a"] * t["a"]
    t["c"] = 8 * t["b"]
    t["d"] = torch.log(t["c"])
    t["e"] = t["d"].sum()
    return t


def doubling() -> Tensors:
    """A8."""
    t = leaves(x=[1, 1, 1])
    t["y"] = t["x"] * 2
    while t["y"].norm() < 1000:
        t["y"] = t["y"] * 2
    return t


def weights(a: object, b: object, c: object) -> Tensors:
    """A9 to A11."""
    t = leaves(a=a, b=b, c=c)
    t["y"] = 3 * t["a"] + 2 * t["b"] * t["b"] + torch.log(t["c"])
    return t


def rows() -> Tensors:
    """A12 to A14."""
    t = leaves(x=[[1, 2, 3, 4]])
    t["z"] = 2 * t["x"]
    t["loss"] = t["z"].sum(dim=1)
    return t


def product() -> Tensors:
    """A15."""
    t = leaves(a=2, b=3, d=4)
    t["c"] = t["a"] + t["b"]
    t["e"] = t["c"] * t["d"]
    return t


def second_order() -> Tensors:
    """A17."""
    t = leaves(x=[[1, 2], [3, 4]])
    t["y"] = (t["x"] ** 2).sum()
    t["g"] = torch.autograd.grad(t["y"], t["x"], create_graph=True)[0]
    return t


def squares() -> Tensors:
    """A18, without the custom Function."""
    t = leaves(x=[1, 2, 3])
    t["y"] = t["x"] * t["x"]
    t["loss"] = t["y"].sum()
    return t


@dataclass(frozen=True)
class Case:
    """One row: arguments for the command line, and the same thing asked of torch.

    Attributes:
        command: an example and its options.
        leaves: what must come to these leaves.
        own: the gradient of the program's own call, where none is given.
    """

    name: str
    command: str
    build: Callable[[], Tensors]
    root: str
    leaves: Mapping[str, object]
    own: object = None

    @property
    def arguments(self) -> list[str]:
        """The words of the command line, the example with its folder."""
        example, *options = self.command.split()
        return [str(EXAMPLES / example), *options]

    @property
    def gradient(self) -> torch.Tensor | None:
        """What the pass begins with."""
        given = self.command.partition("--gradient ")[2]
        value = eval(given) if given not in ("", "ones") else self.own
        return None if value is None else torch.tensor(value, dtype=torch.float32)


SCALAR, VECTOR = partial(chain, 5), partial(chain, [1, 2, 3])
POINT, SUM = {"a": 0.4}, {"a": [2, 1, 0.666667]}
TENS = {"x": [102.4, 1024, 0.1024]}
WEIGHTS = {"a": [0.3, 3, 0.0003], "b": [1.2, 16, 0.002], "c": [0.016667, 0.142857, 1.25e-5]}
VECTORS = partial(weights, [1, 2, 3], [3, 4, 5], [6, 7, 8])
TENTHS, SLOPES = partial(weights, 0.1, 1, 0.1), {"a": 3, "b": 4, "c": 10}
V, ONES, TWOS = [0.1, 1, 0.0001], [[1, 1], [1, 1]], {"x": [2, 2, 2, 2]}

CASES = [
    Case("A1", "chain_rule.py", SCALAR, "d", POINT),
    Case("A2", "chain_rule.py --root c --gradient 0.005", SCALAR, "c", POINT),
    Case("A3", "chain_rule.py --root b --gradient 0.04", SCALAR, "b", POINT),
    Case("A2-own-call", "chain_rule.py --call 2", SCALAR, "c", POINT, 0.005),
    Case("A3-own-call", "chain_rule.py --call 3", SCALAR, "b", POINT, 0.04),
    Case("A4", "vector_chain.py", VECTOR, "e", SUM),
    Case("A5", "vector_chain.py --root d --gradient [1,1,1]", VECTOR, "d", SUM),
    Case("A6", "vector_chain.py --root c --gradient [1/8,1/32,1/72]", VECTOR, "c", SUM),
    Case("A7", "vector_chain.py --root b --gradient [1,8/32,8/72]", VECTOR, "b", SUM),
    Case("A8", "doubling.py", doubling, "y", TENS, V),
    Case("A8-given", "doubling.py --gradient [0.1,1,0.0001]", doubling, "y", TENS),
    Case("A9", "weights.py --gradient [0.1,1,0.0001]", VECTORS, "y", WEIGHTS),
    Case("A10", "scalars.py", TENTHS, "y", SLOPES),
    Case("A10-function", "scalars.py::y", TENTHS, "y", SLOPES),
    Case("A11-first", "accumulate.py", partial(weights, 1, 1, 1), "y", {"a": 3, "b": 4}),
    Case("A12-own-call", "jacobian_rows.py", rows, "loss", TWOS),
    Case("A12", "jacobian_rows.py --root z --gradient [[1,0,0,0]]", rows, "z", {"x": [2, 0, 0, 0]}),
    Case("A13", "jacobian_rows.py --root z --gradient [[0,1,0,0]]", rows, "z", {"x": [0, 2, 0, 0]}),
    Case("A14", "jacobian_rows.py --root z --gradient [[1,1,1,1]]", rows, "z", TWOS),
    Case("A15", "product_of_sum.py", product, "e", {"a": 4, "b": 4, "d": 5}),
    Case("A17", "second_order.py --root g --gradient ones", second_order, "g", TWOS, ONES),
    Case("A17-own-call", "second_order.py --call 2", second_order, "g", TWOS, ONES),
    Case("A18", "custom_function.py", squares, "loss", {"x": [2, 4, 6]}),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_gradients_are_torchs_own(case: Case, session: Session) -> None:
    report = session.look_at(*case.arguments)
    tensors = case.build()
    for leaf in report.graph.leaves:
        (name,) = leaf.names[:1]
        found = new_gradient(report, name)
        assert is_close(found, gradient_at(case, tensors, name)), name
        if name in case.leaves:
            assert is_close(found, torch.tensor(case.leaves[name]), rtol=1e-4), name
    is_returned = case.name.startswith("A10")
    assert [root.label for root in report.graph.roots] == ["" if is_returned else case.root]
    inner = {name: node for name, node in variables(report).items() if name in tensors}
    assert inner or is_returned
    for name, node in inner.items():
        expected = gradient_at(case, tensors, name)
        assert is_close(report.passes[0].at(node.id), expected), name


def gradient_at(case: Case, tensors: Tensors, name: str) -> torch.Tensor:
    """What torch says comes to a variable."""
    (found,) = torch.autograd.grad(
        tensors[case.root], tensors[name], case.gradient, retain_graph=True
    )
    return found


def example(name: str) -> str:
    return str(EXAMPLES / name)


def test_a11_the_second_pass_says_what_grad_was_and_became(session: Session) -> None:
    report = session.look_at(example("accumulate.py"), "--call", "2")
    backward = report.passes[0]
    assert backward.number == 2
    found = {}
    for leaf, entry in zip(report.graph.leaves, backward.accumulations, strict=True):
        assert entry.before is not None
        assert entry.after is not None
        parts = [backward.gradients[i] for i in (entry.before, entry.new, entry.after)]
        found[leaf.names[0]] = [float(info.values[0]) for info in parts if info.values]
    assert found == {"a": [3, 3, 6], "b": [4, 4, 8], "c": [1, 1, 2]}

    shown = session.cli("backward", example("accumulate.py"), "--call", "2")
    assert "3 + 3 = 6" in shown.out


def test_a_leaf_that_a_pass_does_not_reach_keeps_its_grad(session: Session) -> None:
    path = session.write(
        """
        import torch
        a, b = torch.tensor(1.0, requires_grad=True), torch.tensor(2.0, requires_grad=True)
        (3 * a + b).backward()
        (a * b).backward(inputs=[a])
        """
    )
    shown = session.cli("backward", str(path), "--call", "2").out
    assert re.search(r"● a .* 3 \+ 2 = 5$", shown, re.MULTILINE)
    assert re.search(r"● b .*∅ not reached .* stays 1$", shown, re.MULTILINE)


def test_a16_every_parameter_of_the_generator_has_a_gradient(session: Session) -> None:
    training = [example("blackbox/train.py"), "--", "--steps", "1", "--directions", "4"]
    report = session.look_at(*training)
    names = {leaf.names[0] for leaf in report.graph.leaves}
    parts = ("fc.weight", "conv1.weight", "bn1.bias", "conv2.weight", "bn2.weight", "to_image.bias")
    assert {f"generator.{part}" for part in parts} <= names
    assert len(names) == 10
    for name in names:
        assert new_gradient(report, name).state == "finite", name
    assert [root.label for root in report.graph.roots] == ["gen_out"]
    assert report.graph.module_of(node_of(report, "torch.tanh(self.to_image(x))")) == "generator"


def test_a17_the_graph_of_a_gradient_marks_what_backward_made(session: Session) -> None:
    report = session.look_at(example("second_order.py"), "--call", "2")
    made = [node for node in report.graph.nodes if node.backward_made]
    assert made
    assert set(expressions(report)) == {"x**2"}
    assert session.look_at(example("second_order.py")).graph == report.graph
    first = session.look_at(example("second_order.py"), "--call", "1")
    assert not [node for node in first.graph.nodes if node.backward_made]


def test_two_runs_give_the_same_bytes_outside_meta(session: Session) -> None:
    texts = []
    for name in ("one.json", "two.json"):
        session.cli("backward", example("blackbox/train.py"), "-o", name, "--", "--directions", "2")
        text = (session.folder / name).read_text("utf-8")
        texts.append(re.sub(r'"created":"[^"]*"', "", text))
    assert texts[0] == texts[1]
