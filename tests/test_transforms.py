"""What torch.func makes: its nodes have the line and the expression that the program wrote."""

from __future__ import annotations

import pytest

from tests.looking import Session, expression_of

HEAD = "import torch\nfrom torch.func import *\n"
CASES = {
    "vmap of grad": (
        "x = torch.randn(3, 2, requires_grad=True)\n"
        "f = lambda v: (v.sin() ** 2).sum()\n"
        "vmap(grad(f))(x).square().sum().backward()\n",
        {"v.sin()", "v.sin() ** 2"},
    ),
    "hessian": (
        "w = torch.randn(2, requires_grad=True)\n"
        "hessian(lambda v: (v * w).cos().sum())(torch.randn(2)).square().sum().backward()\n",
        {"v * w", "(v * w).cos()"},
    ),
    "vjp": (
        "w = torch.randn(3, requires_grad=True)\n"
        "out, pull = vjp(lambda v: v.exp() * w, torch.ones(3))\n"
        "pull(torch.ones(3))[0].sum().backward()\n",
        {"v.exp() * w", "v.exp()"},
    ),
    "functional_call": (
        "net = torch.nn.Linear(2, 1)\n"
        "f = lambda p, v: functional_call(net, p, (v,)).tanh().sum()\n"
        "found = grad(f)(dict(net.named_parameters()), torch.ones(4, 2))\n"
        "found['weight'].square().sum().backward()\n",
        {"functional_call(net, p, (v,))", "functional_call(net, p, (v,)).tanh()"},
    ),
}


@pytest.mark.parametrize(("text", "wanted"), CASES.values(), ids=CASES)
def test_nodes_made_inside_a_transform_have_their_expression(
    session: Session, text: str, wanted: set[str]
) -> None:
    report = session.look(HEAD + text)
    nodes = [node for node in report.graph.nodes if node.kind != "leaf"]
    assert all(node.origin is not None for node in nodes)
    derived = {expression_of(report, node) for node in nodes if node.backward_made}
    assert wanted <= derived, derived


def test_a_pass_of_a_transform_that_fails_is_the_program_s_own(session: Session) -> None:
    done = session.cli(
        "backward -c",
        "x = torch.ones(3, requires_grad=True)\n"
        "try: torch.func.grad(lambda v: v * x)(x)\n"
        "except RuntimeError as error: print('caught')\n"
        "(x * 2).sum().backward()",
    )
    assert done.status == 0
    assert "caught" in done.out


def test_where_nothing_but_transforms_differentiate_it_says_what_to_do(session: Session) -> None:
    session.write("import torch\ntorch.func.grad(lambda v: (v * v).sum())(torch.ones(2))\n")
    for command in ("trace", "doctor"):
        done = session.cli(command, "program.py")
        assert "what a transform walks is gone when it ends" in done.err
        assert "FILE.py::FUNCTION" in done.err
