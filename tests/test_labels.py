"""How nodes, leaves, modules and roots are called: in the user's own words."""

from __future__ import annotations

import re
from typing import Any

import pytest

from gradscope.model.report import Report
from gradscope.simplify.folded import simplify
from tests.looking import Session, expressions, leaf_named, node_of

A = "import torch\na = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)\n"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("y = a.exp().log()\n", ["a.exp().log()", "a.exp()"]),
        ("y = sum([part * 2 for part in (a, a)])\n", ["sum([part * 2 for part in (a, a)])"]),
        ("if (y := a * 2).sum() > 0:\n    pass\n", ["a * 2"]),
        ("y = a * 1\ny += a\n", ["y += a", "a * 1"]),
        ("y = a * 1\ny[0] = 5\n", ["y[0] = 5", "a * 1"]),
        ("y = a * 1\ny[0] += a[1]\n", ["y[0] += a[1]", "a * 1", "a[1]"]),
        ("n = 'ä€😀'; y = a * 2; y = y + 1\n", ["y + 1", "a * 2"]),
        ("exec('y = a * 7')\n", [""]),
        ("y = torch.nn.functional.softmax(\n    a, dim=0)\n", None),
        ("y = -a\n", ["-a"]),
        ("y = a[1:] @ a[:2]\n", ["a[1:] @ a[:2]", "a[1:]", "a[:2]"]),
        ("y = a.mT if a.dim() > 1 else a.T + 0\n", None),
    ],
)
def test_a_node_is_labelled_with_the_exact_text(
    code: str, expected: list[str] | None, session: Session
) -> None:
    report = session.look(A + code, "--root", "y", command="trace")
    found = expressions(report)
    if expected is None:
        assert all(text and text in code for text in found)
    else:
        assert set(expected) - {""} <= set(found)
        assert set(found) <= {*expected, "part * 2"}


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("y = a * 2\nz = y + 1\n", {"y", "z"}),
        ("u = v = a * 2\n", {"u = v"}),
        ("y: torch.Tensor = a * 2\n", {"y"}),
        ("values, places = a.max(0)\n", {"values, places"}),
        ("first, *rest = a.unbind()\ny = first + rest[0]\n", {"first, *rest", "y"}),
        ("class Box: pass\nbox = Box()\nbox.y = a * 2\n", {"box.y"}),
        ("out = {}\nout['y'] = a * 2\n", {"out['y']"}),
        ("if (y := a * 2).sum() > 0:\n    pass\n", {"y"}),
        ("with torch.enable_grad():\n    y = a * 2\n", {"y"}),
    ],
)
def test_a_node_knows_the_variable_it_was_assigned_to(
    code: str, names: set[str], session: Session
) -> None:
    root = {"u = v": "u", "values, places": "values", "box.y": "box.y", "out['y']": "out['y']"}
    name = next((root[name] for name in names if name in root), "z" if "z" in names else "y")
    report = session.look(A + code, "--root", name, command="trace")
    assert {node.variable for node in report.graph.nodes if node.kind != "leaf"} - {""} == names


def test_statements_say_themselves_what_they_assign_to(session: Session) -> None:
    text = A + "y = a * 1\nfor row in y * 2:\n    y = y + row\ny += 3\ny[0] = 1\n"
    report = session.look(text, "--root", "y", command="trace")
    for statement in ("y += 3", "y[0] = 1", "for row in y * 2"):
        assert node_of(report, statement).variable == ""


LEAVES = """
import dataclasses
import torch
from torch import nn

@dataclasses.dataclass
class Holder:
    scale: torch.Tensor
    inner: dict

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 2, bias=False)
        self.blocks = nn.ModuleList([nn.Linear(2, 2, bias=False)])
        self.plain = [nn.Linear(2, 2, bias=False)]
        self.free = nn.Parameter(torch.ones(2))
    def forward(self, x):
        x = self.fc(x)
        for block in [*self.blocks, *self.plain]:
            x = block(x)
        return x * self.free

def main():
    net = Net()
    params = {"w": torch.ones(2, requires_grad=True)}
    holder = Holder(torch.ones(2, requires_grad=True), {"deep": torch.ones(2, requires_grad=True)})
    pair = [torch.ones(2, requires_grad=True)]
    hidden = (lambda t: lambda: t)(torch.ones(2, requires_grad=True))
    x = net(torch.ones(1, 2)) * params["w"] * holder.scale * holder.inner["deep"] * pair[0]
    loss = (x * hidden()).sum()
    loss.backward()

main()
"""


def test_leaves_have_the_names_the_program_has_for_them(session: Session) -> None:
    report = session.look(LEAVES)
    names = {leaf.names[0] for leaf in report.graph.leaves if leaf.names}
    assert names == {
        "fc.weight",
        "blocks.0.weight",
        "plain[0].weight",
        "free",
        "params['w']",
        "holder.scale",
        "holder.inner['deep']",
        "pair[0]",
        # what only a closure holds is known by the line that made it
    }


ROWS = "rows = [torch.ones(2, requires_grad=True) for _ in range(3)]\ny = a.sum()\n"
LAYERS = "rows = [torch.nn.Linear(3, 3, bias=False) for _ in range(3)]\ny = a\n"


@pytest.mark.parametrize(
    ("code", "names"),
    [
        (ROWS + "for row in rows:\n    y = y + row\n", {"rows[0]", "rows[1]", "rows[2]"}),
        (ROWS + "last = rows[2]\nfirst = rows[0]\ny = sum(rows)\n", {"first", "rows[1]", "last"}),
        (LAYERS + "for row in rows:\n    y = row(y)\n", {f"rows[{n}].weight" for n in range(3)}),
        ("b = a.detach().clone().requires_grad_()\nboth = [b, a * 2]\ny = sum(both)\n", {"b"}),
        # The variable of a loop holds another one soon, and its function has returned.
        (
            "def chain():\n    x = a.detach().requires_grad_()\n    z = x\n"
            "    for _ in range(3):\n        z = z * 2\n    return z\ny = chain()\n",
            {"x"},
        ),
    ],
)
def test_the_last_of_a_loop_is_called_as_the_others(
    code: str, names: set[str], session: Session
) -> None:
    report = session.look(A + code + "y = y.sum()\n", "--root", "y", command="trace")
    assert {leaf.names[0] for leaf in report.graph.leaves} - {"a"} == names


def test_a_parameter_has_its_path_in_the_module_first_and_a_tied_one_has_both(
    session: Session,
) -> None:
    report = session.look("""
        import torch
        from torch import nn
        net = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False))
        net[1].weight = net[0].weight
        w = net[0].weight
        net(torch.ones(1, 2)).sum().backward()
        """)
    (leaf,) = report.graph.leaves
    assert leaf.names == ("0.weight", "1.weight", "w")
    assert len([edge for edge in report.graph.edges if edge.target == leaf.node]) == 2


def calls(report: Report) -> list[tuple[str, str, int | None]]:
    """Path, class and parent of every call, in order."""
    return [(call.path, call.type, call.parent) for call in report.graph.calls]


# A model that a function made is gone when the graph is looked at, and has the same names.
MADE = ("criterion(net(torch.ones(1, 2)), torch.zeros(1, 2))", "made()")


@pytest.mark.parametrize("loss", MADE)
def test_modules_are_named_by_their_path_and_called_twice_are_two_calls(
    loss: str, session: Session
) -> None:
    report = session.look(
        """
        import torch
        from torch import nn
        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(2, 2)
            def forward(self, x):
                return torch.relu(self.fc(x))
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.block = Block()
            def forward(self, x):
                return self.block(self.block(x))
        def made():
            return nn.MSELoss()(Net()(torch.ones(1, 2)), torch.zeros(1, 2))
        net = None
        criterion = nn.MSELoss()
        LOSS.backward()
        """.replace("LOSS", loss).replace("None", "Net()" if "net" in loss else "None")
    )
    found = calls(report)
    assert [path for path, _, _ in found].count("block") == 2
    assert [path for path, _, _ in found].count("block.fc") == 2
    assert ("criterion" if "net" in loss else "MSELoss", "MSELoss", None) in found
    relu = node_of(report, "torch.relu(self.fc(x))")
    assert report.graph.module_of(relu) == "block"
    assert len(report.graph.leaves) == 2


HOLDING = """
import torch
from torch import nn

class Part(nn.Module):
    def __init__(self, *others):
        super().__init__()
        self.others, self.fc = nn.ModuleList(others), nn.Linear(2, 2, bias=False)
    def forward(self, x):
        return self.fc(x)
"""


@pytest.mark.parametrize(
    "made",
    [
        "net = nn.Sequential(Part()); net.append(Part(net))",
        """
parts = [Part() for _ in range(12)]
for part in parts:
    part.others.extend(other for other in parts if other is not part)
net = nn.Sequential(*parts)
del part, parts
""",
        """
parts = [Part()]
for _ in range(40):
    parts.append(Part(parts[-1], parts[-1]))
net = nn.Sequential(*reversed(parts))
del parts
""",
        """
import sys
sys.setrecursionlimit(50_000)
net = nn.Sequential(Part())
net.append(Part(net))
""",
    ],
    ids=["the one around it", "each the others", "more ways than can be gone", "high limit"],
)
def test_modules_that_hold_one_another_have_a_path_each(made: str, session: Session) -> None:
    report = session.look(f"{HOLDING}\n{made}\nnet(torch.ones(1, 2)).sum().backward()\n")
    namespace: dict[str, Any] = {}
    exec(f"{HOLDING}\n{made}", namespace)
    parameters = dict(namespace["net"].named_parameters())
    assert {leaf.names for leaf in report.graph.leaves} == {(name,) for name in parameters}


@pytest.mark.parametrize(
    ("told", "name"),
    [
        ("return self.inner.named_modules(*args, **kwargs)", "0.weight"),
        # What a program's own method raises is no reason to know nothing.
        ("raise LookupError", "0.inner.weight"),
    ],
)
def test_a_part_that_tells_of_others_as_its_own_names_them_so(
    told: str, name: str, session: Session
) -> None:
    report = session.look(
        """
        import torch
        from torch import nn

        class Wrapper(nn.Module):
            def __init__(self, inner):
                super().__init__()
                self.inner = inner
            def forward(self, x):
                return self.inner(x)
            def named_modules(self, *args, **kwargs):
                TOLD

        net = nn.Sequential(Wrapper(nn.Linear(2, 2, bias=False)))
        net(torch.ones(1, 2)).sum().backward()
        """.replace("TOLD", told),
        command="doctor",
    )
    (leaf,) = report.graph.leaves
    assert leaf.names[0] == name


@pytest.mark.parametrize("how", ["program.py", "-m", "-c", "program.py::make"])
def test_every_kind_of_target_is_labelled(how: str, session: Session) -> None:
    session.write(A + "def make():\n    return (a * 2).sum()\ny = make()\n")
    arguments = {
        "-m": ["-m", "program"],
        "-c": ["-c", "(a * 2).sum()", "--let", "a=[1, 2, 3]"],
    }.get(how, [how])
    report = session.look_at(*arguments)
    assert expressions(report) == ["(a * 2).sum()", "a * 2"]
    file = "<string>" if how == "-c" else "program.py"
    assert {origin.file for origin in report.graph.origins} == {file}
    assert leaf_named(report, "a")


def test_nodes_of_two_threads_with_one_number_have_no_line(process: Session) -> None:
    """Torch numbers the nodes of each thread from 0, and says of none who made it."""
    path = process.write(
        """
        import threading
        import torch
        w = torch.tensor([1.0, 2.0], requires_grad=True)
        v = torch.tensor([3.0, 4.0], requires_grad=True)
        parts = []
        worker = threading.Thread(target=lambda: parts.append(v.exp().sin()))
        worker.start()
        worker.join()
        mine = w.exp().cos()
        loss = (mine * parts[0]).sum()
        loss.backward()
        """
    )
    report = process.look_at(str(path), command="check")
    lines = {
        node.short_op: report.graph.origins[node.origin].line
        for node in report.graph.nodes
        if node.origin is not None
    }
    assert lines == {"Sum": 10, "Mul": 10}
    (note,) = report.notes
    assert note.endswith("which line made which of 4 operations is not known")
    # A call of one thread is not compared for a node of another one.
    assert report.checks is not None
    checked = {
        report.graph.nodes[number].short_op
        for call in report.checks.calls
        if call.verdict != "not checked"
        for number in call.nodes
    }
    assert checked == {"Sum", "Mul"}


CALLS = """
import torch
from torch import nn

class Passed(nn.Linear):
    def __call__(self, *given):
        return super().__call__(*given)

class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.net, self.passed = nn.Sequential(nn.Linear(2, 2), nn.Tanh()), Passed(2, 2)
        self.cell = nn.LSTMCell(2, 2)
    def forward(self, x):
        return self.passed(self.net(x)) * 2

torch.manual_seed(0)
field = Field()
k1 = field(torch.ones(3, 2))
k2 = field(
    k1 / 2)
k1.add(k2).sum().backward()
"""


def test_a_module_is_called_by_the_line_that_calls_it(session: Session) -> None:
    path = str(session.write(CALLS))
    graph = session.look_at(path).graph
    told: dict[str, set[str]] = {}
    for call in graph.calls:
        origin = None if call.origin is None else graph.origins[call.origin]
        told.setdefault(call.path, set()).add(origin.label if origin else "")
    # Torch's own code called the parts of the Sequential, which is not the program's words.
    assert told["net.0"] == told["net.1"] == {""}
    assert told["net"] == {"self.net(x)"}
    assert told[""] == {"k1 = field(torch.ones(3, 2))", "k2 = field(\n    k1 / 2)"}
    rows = session.cli("backward", path, "--depth", "1", "--width", "240").out
    assert re.search(r"Field +k2 = field\( k1 / 2\) .*program.py:19$", rows, re.M)
    inside = session.cli("backward", path, "--depth", "2", "--width", "240").out
    assert re.search(r"net Sequential +self.net\(x\) .*program.py:14$", inside, re.M)
    # A subclass that hands its call on has no words for it.
    assert "passed Passed" in inside and "super()" not in inside


def test_torchs_own_steps_of_one_line_stay_closed_where_there_is_much(session: Session) -> None:
    loop = (
        "state = None\nfor step in range(30):\n"
        "    state = field.cell(field.passed(torch.ones(3, 2)), state)\n"
    )
    text = CALLS.partition("k1 = ")[0] + loop + "state[0].sum().backward()\n"
    items = simplify(session.look(text).graph).items
    (cell,) = [one for one in items if one.type == "LSTMCell"]
    assert cell.label == "state = field.cell(field.passed(torch.ones(3, 2)), state)"
    assert len(cell.rounds) == 30
