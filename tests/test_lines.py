"""The doctor names the right rule, line and expression, however the program is written."""

from __future__ import annotations

import json
import textwrap
from dataclasses import dataclass, field

import pytest

from tests.looking import Session


@dataclass(frozen=True)
class Case:
    """A program with one sick line: marked ``# here``, or line ``line`` of ``file``."""

    name: str
    text: str
    expression: str
    rule: str = "GS102"
    files: dict[str, str] = field(default_factory=dict)
    file: str = "program.py"
    line: int = 0


HEAD = "import torch\nfrom torch import nn\nw = torch.zeros(3, requires_grad=True)\n"

CASES = [
    Case("plain", "loss = w.sqrt().sum()  # here\nloss.backward()\n", "w.sqrt()"),
    Case(
        "a loss made anew of its number, beside a detach that is meant",
        """
        net = nn.Linear(3, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(2):
            y = net(torch.ones(2, 3))
            loss = (y - 0.9 * y.detach()).square().mean()
            loss = torch.tensor(loss.item(), requires_grad=True)  # here
            loss.backward()
            optimizer.step()
        """,
        "loss.item()",
        "GS303",
    ),
    Case(
        "a loss that is detached and made to require a gradient",
        """
        net = nn.Linear(3, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(2):
            y = net(torch.ones(2, 3))
            loss = (y - 0.9 * y.detach()).square().mean()
            loss = loss.detach().requires_grad_()  # here
            loss.backward()
            optimizer.step()
        """,
        "loss.detach()",
        "GS303",
    ),
    Case(
        "several lines",
        "loss = (\n    (w + 0)\n    .abs()\n    .sqrt()  # here\n    .sum()\n)\nloss.backward()\n",
        "sqrt()",
    ),
    Case(
        "an argument on its own line",
        "loss = torch.sum(\n    torch.sqrt(  # here\n        w,\n    ),\n)\nloss.backward()\n",
        "torch.sqrt(\n        w,\n    )",
    ),
    Case(
        "operator over two lines",
        "y = w + 1\nz = (y  # here\n     / w)\nz.sum().backward()\n",
        "y\n     / w",
        "GS101",
    ),
    Case(
        "semicolons",
        "a = w + 0; b = a.sqrt(); c = b.sum(); c.backward()  # here\n",
        "a.sqrt()",
    ),
    Case(
        "layers in a list",
        """
        class Root(nn.Module):
            def forward(self, x):
                return x.sqrt()  # here
        layers = [nn.Identity(), Root(), nn.Identity()]
        x = w
        for layer in layers:
            x = layer(x)
        x.sum().backward()
        """,
        "x.sqrt()",
    ),
    Case(
        "a dict of outputs",
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = nn.Parameter(torch.zeros(3))
            def forward(self, x):
                return {
                    "logits": self.weight * x,
                    "scale": torch.sqrt(self.weight),  # here
                }
        out = Net()(torch.ones(3))
        (out["logits"] + out["scale"]).sum().backward()
        """,
        "torch.sqrt(self.weight)",
    ),
    Case(
        "functions without modules",
        """
        def norm(params, x):
            return (params["w"] * x).pow(2).sum().sqrt()  # here
        params = {"w": torch.zeros(3, requires_grad=True)}
        norm(params, torch.ones(3)).backward()
        """,
        '(params["w"] * x).pow(2).sum().sqrt()',
    ),
    Case(
        "a closure",
        """
        def make(power):
            def loss(x):
                return (x ** power).sum()  # here
            return loss
        make(0.5)(w).backward()
        """,
        "x ** power",
    ),
    Case(
        "a list comprehension",
        """
        parts = [
            part.sqrt()  # here
            for part in w.unbind()
        ]
        torch.stack(parts).sum().backward()
        """,
        "part.sqrt()",
    ),
    Case(
        "a generator expression",
        "sum(part.sqrt() for part in w.unbind()).backward()  # here\n",
        "part.sqrt()",
    ),
    Case(
        "a dict comprehension",
        "d = {k: torch.sqrt(v) for k, v in {'a': w}.items()}  # here\nd['a'].sum().backward()\n",
        "torch.sqrt(v)",
    ),
    Case(
        "a decorator",
        """
        import functools
        def rooted(function):
            @functools.wraps(function)
            def call(*args, **kwargs):
                return function(*args, **kwargs).sqrt()  # here
            return call
        @rooted
        def energy(x):
            return (x * x).sum()
        energy(w).backward()
        """,
        "function(*args, **kwargs).sqrt()",
    ),
    Case(
        "a decorated function",
        """
        def doubled(function):
            return lambda *args: function(*args) * 2
        @doubled
        @doubled
        def root(x):
            return x.sqrt()  # here
        root(w).sum().backward()
        """,
        "x.sqrt()",
    ),
    Case(
        "a lambda",
        "f = lambda t: t.sqrt().sum()  # here\nf(w).backward()\n",
        "t.sqrt()",
    ),
    Case(
        "a lambda in a dict",
        "ACT = {\n    'id': lambda t: t,\n    'root': lambda t: torch.sqrt(t),  # here\n}\n"
        "ACT['root'](w).sum().backward()\n",
        "torch.sqrt(t)",
    ),
    Case(
        "code that was executed",
        "space = {'w': w}\nexec('\\n\\ny = w.sqrt()', space)\nspace['y'].sum().backward()\n",
        "",
        file="<string>",
        line=3,
    ),
    Case(
        "executed code that linecache knows",
        """
        import linecache
        text = "def f(t):\\n    return t.sqrt()\\n"
        linecache.cache["<made>"] = (len(text), None, text.splitlines(True), "<made>")
        space = {}
        exec(compile(text, "<made>", "exec"), space)
        space["f"](w).sum().backward()
        """,
        "t.sqrt()",
        file="<made>",
        line=2,
    ),
    Case(
        "executed code under a name of no file",
        "space = {'w': w}\nexec(compile('y = w.sqrt()', 'cell 7', 'exec'), space)\n"
        "space['y'].sum().backward()\n",
        "",
        file="cell 7",
        line=1,
    ),
    Case(
        "code executed from a file",
        "space = {'w': w}\npath = 'part.txt'\n"
        "exec(compile(open(path).read(), path, 'exec'), space)\nspace['y'].sum().backward()\n",
        "w.sqrt()",
        files={"part.txt": "# a part\n\ny = w.sqrt()\n"},
        file="part.txt",
        line=3,
    ),
    Case(
        "evaluated text",
        "eval('w.sqrt()').sum().backward()\n",
        "",
        file="<string>",
        line=1,
    ),
    Case(
        "a generator function",
        """
        def losses(x):
            for part in x.unbind():
                yield part.sqrt()  # here
        sum(losses(w)).backward()
        """,
        "part.sqrt()",
    ),
    Case(
        "yield from",
        """
        def inner(x):
            yield x + 1
            yield x.sqrt()  # here
        def outer(x):
            yield from inner(x)
        sum(outer(w)).sum().backward()
        """,
        "x.sqrt()",
    ),
    Case(
        "nested functions",
        """
        def outer(x):
            def middle(y):
                def inner(z):
                    return z.sqrt()  # here
                return inner(y)
            return middle(x)
        outer(w).sum().backward()
        """,
        "z.sqrt()",
    ),
    Case(
        "a property",
        """
        class Box:
            @property
            def scale(self):
                return w.sqrt()  # here
        Box().scale.sum().backward()
        """,
        "w.sqrt()",
    ),
    Case(
        "a cached property",
        """
        import functools
        class Box:
            @functools.cached_property
            def scale(self):
                return w.sqrt()  # here
        Box().scale.sum().backward()
        """,
        "w.sqrt()",
    ),
    Case(
        "functools.partial of torch's own",
        """
        import functools
        root = functools.partial(torch.pow, exponent=0.5)
        root(w).sum().backward()  # here
        """,
        "root(w)",
    ),
    Case(
        "functools.reduce",
        """
        import functools
        loss = functools.reduce(lambda a, b: a + b.sqrt(), w.unbind(), 0)  # here
        loss.backward()
        """,
        "b.sqrt()",
    ),
    Case(
        "a method called by map",
        """
        parts = list(map(torch.Tensor.sqrt, w.unbind()))  # here
        torch.stack(parts).sum().backward()
        """,
        "list(map(torch.Tensor.sqrt, w.unbind()))",
    ),
    Case(
        "operator.truediv",
        "import operator\ny = operator.truediv(w + 1, w)  # here\ny.sum().backward()\n",
        "operator.truediv(w + 1, w)",
        "GS101",
    ),
    Case(
        "under __main__",
        """
        def main():
            loss = w.sqrt().sum()  # here
            loss.backward()
        if __name__ == "__main__":
            main()
        """,
        "w.sqrt()",
    ),
    Case(
        "a star import over several files",
        "from tools.losses import *\nloss = root_loss(w)\nloss.backward()\n",
        "torch.sqrt(x + EPS)",
        files={
            "tools/__init__.py": "",
            "tools/constants.py": "EPS = 0.0\n",
            "tools/losses.py": "import torch\nfrom tools.constants import *\n\n"
            "def root_loss(x):\n    return torch.sqrt(x + EPS).sum()\n",
        },
        file="tools/losses.py",
        line=5,
    ),
    Case(
        "a class body",
        "class Constants:\n    ROOT = w.sqrt()  # here\nConstants.ROOT.sum().backward()\n",
        "w.sqrt()",
    ),
    Case(
        "a coroutine",
        """
        import asyncio
        async def loss(x):
            await asyncio.sleep(0)
            return x.sqrt().sum()  # here
        async def main():
            (await loss(w)).backward()
        asyncio.run(main())
        """,
        "x.sqrt()",
    ),
    Case(
        "an async generator",
        """
        import asyncio
        async def losses(x):
            yield x.sqrt().sum()  # here
        async def main():
            async for loss in losses(w):
                loss.backward()
        asyncio.run(main())
        """,
        "x.sqrt()",
    ),
    Case(
        "a context manager",
        """
        import contextlib
        @contextlib.contextmanager
        def scaled(x):
            yield x.sqrt()  # here
        with scaled(w) as y:
            y.sum().backward()
        """,
        "x.sqrt()",
    ),
    Case(
        "what torch calls deprecated",
        """
        import typing_extensions
        import warnings
        warnings.simplefilter("ignore")
        nll = typing_extensions.deprecated("as torch does it")(nn.functional.poisson_nll_loss)
        nll(w, torch.ones(3), log_input=False, eps=0).backward()  # here
        """,
        "nll(w, torch.ones(3), log_input=False, eps=0)",
        "GS101",
    ),
    Case(
        "finally",
        "try:\n    y = w + 0\nfinally:\n    y = y.sqrt()  # here\ny.sum().backward()\n",
        "y.sqrt()",
    ),
    Case(
        "except",
        """
        try:
            1 / 0
        except ZeroDivisionError:
            y = w.sqrt()  # here
        y.sum().backward()
        """,
        "w.sqrt()",
    ),
    Case(
        "augmented assignment",
        "y = w + 1\ny /= w  # here\ny.sum().backward()\n",
        "y /= w",
        "GS101",
    ),
    Case(
        "a walrus", "if (y := w.sqrt()).sum() >= 0:  # here\n    y.sum().backward()\n", "w.sqrt()"
    ),
    Case(
        "wide characters before it on the line",
        "n = f'{1 + 1} äöü'; y = w.sqrt(); y.sum().backward()  # here\n",
        "w.sqrt()",
    ),
    Case(
        "a conditional expression",
        "y = w.sqrt() if w.numel() else w.exp()  # here\ny.sum().backward()\n",
        "w.sqrt()",
    ),
    Case(
        "a default argument",
        "def f(y=w.sqrt()):  # here\n    return y\nf().sum().backward()\n",
        "w.sqrt()",
    ),
    Case(
        "a special method",
        """
        class Value:
            def __truediv__(self, other):
                return other.sqrt()  # here
        (Value() / w).sum().backward()
        """,
        "other.sqrt()",
    ),
    Case(
        "__call__ and __getattr__",
        """
        class Lazy:
            def __getattr__(self, name):
                return getattr(torch, name)
        class Act:
            def __call__(self, x):
                return Lazy().sqrt(x)  # here
        Act()(w).sum().backward()
        """,
        "Lazy().sqrt(x)",
    ),
    Case(
        "match",
        "match 'root':\n    case 'root':\n        y = w.sqrt()  # here\ny.sum().backward()\n",
        "w.sqrt()",
    ),
    Case(
        "a static and a class method",
        """
        class Maths:
            @staticmethod
            def root(x):
                return x.sqrt()  # here
            @classmethod
            def both(cls, x):
                return cls.root(x) + x
        Maths.both(w).sum().backward()
        """,
        "x.sqrt()",
    ),
    Case(
        "a dataclass",
        """
        import dataclasses
        @dataclasses.dataclass
        class Holder:
            scale: torch.Tensor
            def __post_init__(self):
                self.root = self.scale.sqrt()  # here
        Holder(w).root.sum().backward()
        """,
        "self.scale.sqrt()",
    ),
    Case(
        "a singledispatch function",
        """
        import functools
        @functools.singledispatch
        def root(x):
            raise TypeError
        @root.register
        def _(x: torch.Tensor):
            return x.sqrt()  # here
        root(w).sum().backward()
        """,
        "x.sqrt()",
    ),
    Case(
        "a sort key",
        """
        made = []
        def key(x):
            made.append(x.sqrt())  # here
            return 0
        sorted([w.sum()], key=key)
        made[0].backward()
        """,
        "x.sqrt()",
    ),
    Case(
        "recursion",
        """
        def nest(x, n):
            return x.sqrt() if n == 0 else nest(x, n - 1)  # here
        nest(w, 20).sum().backward()
        """,
        "x.sqrt()",
    ),
    Case(
        "a module imported by path",
        """
        import importlib.util
        spec = importlib.util.spec_from_file_location("other", "lib/other-name.py")
        other = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(other)
        other.f(w).sum().backward()
        """,
        "x.sqrt()",
        files={"lib/other-name.py": "def f(x):\n    return x.sqrt()\n"},
        file="lib/other-name.py",
        line=2,
    ),
    Case(
        "runpy",
        "import runpy\nrunpy.run_path('part.py', {'w': w})['y'].sum().backward()\n",
        "w.sqrt()",
        files={"part.py": "y = w.sqrt()\n"},
        file="part.py",
        line=1,
    ),
    Case(
        "backward in another function",
        """
        class Trainer:
            def step(self, batch):
                loss = self.loss(batch)
                self.run(loss)
            def loss(self, batch):
                return torch.log(w * batch).mul(0).sum()  # here
            def run(self, loss):
                loss.backward()
        Trainer().step(torch.ones(3))
        """,
        "torch.log(w * batch)",
        "GS101",
    ),
    Case(
        "a detach in a comprehension",
        """
        model = nn.ModuleList([nn.Linear(3, 3) for _ in range(2)])
        head = nn.Linear(3, 1)
        optimizer = torch.optim.SGD([*model.parameters(), *head.parameters()], lr=0.1)
        features = [
            layer(torch.ones(2, 3)).detach()  # here
            for layer in model
        ]
        head(sum(features)).sum().backward()
        """,
        "layer(torch.ones(2, 3)).detach()",
        "GS303",
    ),
    Case(
        "no_grad as a decorator",
        """
        encoder, head = nn.Linear(3, 3), nn.Linear(3, 1)
        optimizer = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.1)
        @torch.no_grad()  # here
        def encode(x):
            return encoder(x)
        head(encode(torch.ones(2, 3))).sum().backward()
        """,
        "@torch.no_grad()",
        "GS304",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_finding_names_the_line_and_the_expression(case: Case, session: Session) -> None:
    for name, text in case.files.items():
        (session.folder / name).parent.mkdir(exist_ok=True)
        session.write(text, name)

    text = HEAD + textwrap.dedent(case.text).lstrip("\n")
    path = session.write(text)
    done = session.cli("doctor", path.name, "-q", "-o", "report.json", "--format", "json")
    found = json.loads(done.out)["findings"]
    lines = [number for number, line in enumerate(text.splitlines(), 1) if "# here" in line]
    place = {
        "file": case.file,
        "line": case.line or lines[0],
        "expression": case.expression,
    }
    assert [(one["rule"], one["location"]) for one in found] == [(case.rule, place)], found
