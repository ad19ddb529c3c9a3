"""What tests of the capture use: a user at a command line, and the questions asked of a report."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import torch

import gradscope
from gradscope.model import storage
from gradscope.model.invariants import check
from gradscope.model.observations import Observations
from gradscope.model.report import GradientInfo, Leaf, Node, Report
from gradscope.rules import RULES
from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.rule import Rule


@dataclass(frozen=True)
class Done:
    """A command that has ended."""

    status: int
    out: str
    err: str


class Overhearing(Rule):
    """Finds nothing, and knows what the doctor has shown its rules last."""

    code = "GS999"
    name = "overhearing"
    seen = Observations()

    def look(self, facts: Facts) -> list[FindingDraft]:
        """Hear of what was seen."""
        self.seen = facts.seen
        return []


@dataclass
class Session:
    """A user in a folder; ``run`` takes the arguments of ``gradscope``."""

    folder: Path
    run: Callable[[list[str]], Done]

    def write(self, text: str, name: str = "program.py") -> Path:
        """Write a program into the folder."""
        path = self.folder / name
        path.write_text(textwrap.dedent(text).lstrip("\n"), "utf-8")
        return path

    def cli(self, command: str, *arguments: str) -> Done:
        """Run one command: its name, or several words that blanks part, and what follows."""
        return self.run([*command.split(), *arguments])

    def told(self, text: str, command: str, *options: str) -> Done:
        """What a command says of a program given as text."""
        self.write(text)
        name, *words = command.split()
        return self.cli(name, "program.py", *words, *options)

    def look(self, text: str, *arguments: str, command: str = "backward") -> Report:
        """The report of a program given as text."""
        return self.look_at(str(self.write(text)), *arguments, command=command)

    def look_at(self, *arguments: str, command: str = "backward") -> Report:
        """The report of any target; fails when there is none."""
        path = self.folder / "report.json"
        path.unlink(missing_ok=True)
        done = self.cli(command, "-o", str(path), *arguments)
        assert path.exists(), f"no report (status {done.status})\n{done.out}{done.err}"
        report = storage.load(path)
        check(report)
        return report

    def warned(self, text: str, *arguments: str) -> list[tuple[str, int]]:
        """The rule and the line of each warning and error of the doctor about a program."""
        found = self.look(text, "-q", *arguments, command="doctor").findings
        found = tuple(one for one in found if one.severity != "information")
        return [(one.rule, one.location.line if one.location else 0) for one in found]

    def seen(self, text: str, *arguments: str) -> Observations:
        """What the doctor's rules are shown of a program in this process."""
        RULES.brought[Overhearing.code] = rule = Overhearing()
        try:
            self.look(text, "-q", *arguments, command="doctor")
        finally:
            del RULES.brought[Overhearing.code]
        return rule.seen

    def overheard(self, text: str, *arguments: str) -> Report:
        """The doctor's report of a program, with what its rules were shown, which is not saved."""
        seen = self.seen(text, *arguments)
        report = storage.load(self.folder / "report.json")
        return msgspec.structs.replace(report, observations=seen)


_PACKAGE = Path(gradscope.__file__).parent
_IN_A_PACKAGE = re.compile(rf"{_PACKAGE.name}/([\w/]+\.py)")


def marked(text: str) -> list[tuple[str, int]]:
    """The rule and the line of each mark ``# <- GS101`` in a program."""
    lines = enumerate(text.lstrip("\n").splitlines(), 1)
    return [(rule[1], at) for at, one in lines if (rule := re.search(r"# <- (GS\d+)", one))]


def own_words(text: str) -> list[str]:
    """What of a text is gradscope's: files of the package, in whichever way their folder is
    written, and what it says itself.  The folder of the clone may be called as it likes."""
    files = [file for file in _IN_A_PACKAGE.findall(text) if (_PACKAGE / file).exists()]
    return [*files, *(line for line in text.splitlines() if line.startswith("gradscope: "))]


def leaf_named(report: Report, name: str) -> Leaf:
    """The leaf with this name."""
    found = [leaf for leaf in report.graph.leaves if name in leaf.names]
    assert len(found) == 1, [leaf.names for leaf in report.graph.leaves]
    return found[0]


def new_gradient(report: Report, name: str, number: int = 0) -> GradientInfo:
    """The gradient that a pass brought to a leaf."""
    backward = report.passes[number]
    position = report.graph.leaves.index(leaf_named(report, name))
    return backward.gradients[backward.accumulations[position].new]


def node_of(report: Report, expression: str) -> Node:
    """The one node whose expression this is; of several the one that made the value."""
    found = [node for node in report.graph.nodes if expression_of(report, node) == expression]
    assert found, expressions(report)
    return found[0]


def expression_of(report: Report, node: Node) -> str:
    """What the user wrote to make this node."""
    origin = report.graph.origin_of(node)
    return "" if origin is None else origin.expression


def expressions(report: Report) -> list[str]:
    """The expressions of all nodes that have one, in the order of the ids."""
    return [text for node in report.graph.nodes if (text := expression_of(report, node))]


def edges_into(report: Report, node: int) -> list[GradientInfo]:
    """The gradients on the edges that lead to a node."""
    edges = report.graph.edges
    return [report.passes[0].on_edge(i) for i, edge in enumerate(edges) if edge.target == node]


def variables(report: Report) -> dict[str, Node]:
    """The node that last made each variable, by its name."""
    return {node.variable: node for node in reversed(report.graph.nodes) if node.variable}


def tensor_of(info: GradientInfo, like: torch.Tensor) -> torch.Tensor:
    """The values of a gradient as a tensor like another one."""
    assert info.values is not None, info
    flat = torch.tensor([float(value) for value in info.values], dtype=torch.float64)
    if like.is_complex():
        flat = torch.view_as_complex(flat.reshape(-1, 2))
    return flat.reshape(like.shape).to(like.dtype)


def is_close(
    info: GradientInfo, expected: Sequence[float] | float | torch.Tensor, rtol: float = 1e-5
) -> bool:
    """Whether a gradient has these values, by default to the rounding of float32."""
    wanted = torch.as_tensor(expected, dtype=torch.float64).reshape(-1)
    assert info.values is not None, info
    found = torch.tensor([float(value) for value in info.values], dtype=torch.float64)
    return torch.allclose(found, wanted, rtol=rtol, atol=1e-12, equal_nan=True)
