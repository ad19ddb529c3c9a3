"""A ``backward`` that autograd never calls, and all those that somebody may call."""

from __future__ import annotations

import pytest

from tests.looking import Session

HEAD = """
import torch
from torch import nn
torch.manual_seed(0)
class Layer(nn.Module):
    scale = 2.0
{layer}
class Sent(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)
    @staticmethod
    def backward(ctx, upstream):
        return layer.backward(upstream)
class Plain(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)
    @staticmethod
    def backward(ctx, upstream):
        return upstream
layer, net, last = Layer(), nn.Linear(4, 4), nn.Linear(4, 1)
optimizer = torch.optim.SGD([*net.parameters(), *last.parameters()], lr=0.1)
for _ in range(3):
    h = net(torch.randn(8, 4))
    {use}
    loss = last(h).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""

_IDENTITY = "def forward(self, x):\n    return x\n"
_TURNED = _IDENTITY + "def backward(self, {}):\n    return -self.scale * grad"
_USED = "h = layer(h)"

TOLD: dict[tuple[str, str], bool] = {
    (_TURNED.format("grad"), _USED): True,
    (_TURNED.format("grad, factor=1.0"), _USED): True,
    (_TURNED.format("*grad"), _USED): True,
    (
        _IDENTITY + "@staticmethod\ndef backward(ctx, grad_output):\n    return -grad_output",
        _USED,
    ): (True),
    # It has not run.
    (_TURNED.format("grad"), "h = h + 0"): False,
    # It takes something else, or more.
    (_IDENTITY + "def backward(self, z):\n    return z - 1", _USED): False,
    (_IDENTITY + "def backward(self, loss):\n    return loss", _USED): False,
    (_TURNED.format("x, grad"), _USED): False,
    (_IDENTITY + "def backward(self):\n    return 0", _USED): False,
    (_IDENTITY + "backward = None", _USED): False,
    # It makes a backward call of its own.
    (_IDENTITY + "def backward(self, grad):\n    self.out.backward(grad)", _USED): False,
    (
        _IDENTITY + "def backward(self, grad):\n    torch.autograd.grad(self.y, self.x, grad)",
        _USED,
    ): (False),
    # Somebody calls it: the program, a hook, a Function.
    (_TURNED.format("grad"), f"{_USED}; layer.backward(torch.ones(2))"): False,
    (_TURNED.format("grad"), f"{_USED} * 1; h.register_hook(layer.backward)"): False,
    (_TURNED.format("grad"), f"{_USED} * 1; h.register_hook(lambda g: layer.backward(g))"): False,
    (_TURNED.format("grad"), "h = Sent.apply(layer(h))"): False,
    (_TURNED.format("grad"), "h = Plain.apply(layer(h))"): True,
    # The class has a Function or a hook for it.
    (
        "def forward(self, x):\n    return Plain.apply(x)\n"
        "def backward(self, grad):\n    return -grad",
        _USED,
    ): False,
}


@pytest.mark.parametrize(("layer", "use"), TOLD)
def test_which_backward_nobody_calls(layer: str, use: str, session: Session) -> None:
    lines = "".join(f"    {line}\n" for line in layer.splitlines())
    text = HEAD.format(layer=lines, use=use)
    report = session.look(text, "-q", "--steps", "all", command="doctor")
    found = [one for one in report.findings if one.rule == "GS411"]
    assert len(found) == TOLD[layer, use]
    for one in found:
        assert one.location is not None
        assert one.location.expression.startswith("def backward(")
        assert (one.severity, one.subject) == ("warning", "Layer")


def test_a_class_of_an_installed_package_is_left_alone(session: Session) -> None:
    package = session.folder / "lib" / "site-packages" / "engine"
    package.mkdir(parents=True)
    source = "from torch import nn\nclass Layer(nn.Module):\n"
    lines = _TURNED.format("grad").splitlines()
    (package / "__init__.py").write_text(source + "".join(f"    {line}\n" for line in lines))
    text = HEAD.format(layer="", use=_USED).replace("class Layer(nn.Module):", "import sys")
    text = text.replace("    scale = 2.0", f"sys.path.append({str(package.parent)!r})")
    text = text.replace("class Sent", "from engine import Layer\nclass Sent")
    report = session.look(text, "-q", command="doctor")
    assert [one.rule for one in report.findings] == []
