"""The line and expression that each operation has, however the program is written."""

from __future__ import annotations

import re

from tests.looking import Session

PROGRAM = r"""
import asyncio, dataclasses, functools, importlib.util, linecache, operator, runpy
import torch, typing_extensions, warnings
from torch import nn
from tools.losses import *
warnings.simplefilter("ignore")
w = torch.ones(3, requires_grad=True)
made = [w.sqrt().sum()]  # -> w.sqrt()

# over several lines
made.append((
    (w + 0)
    .abs()
    .sqrt()  # -> sqrt()
    .sum()
))
made.append(torch.sum(
    torch.sqrt(  # -> torch.sqrt(\n        w,\n    )
        w,
    ),
))
y = w + 1
made.append((y  # -> y\n     / w
     / w))
a = w + 0; b = a.sqrt(); made.append(b)  # -> a.sqrt()
n = f'{1 + 1} äöü'; made.append(w.sqrt())  # -> w.sqrt()

# modules
class Root(nn.Module):
    def forward(self, x):
        return x.sqrt()  # -> x.sqrt()
x = w
for layer in [nn.Identity(), Root(), nn.Identity()]:
    x = layer(x)
made.append(x)

# functions
def norm(params, x):
    return (params["w"] * x).exp().sum().sqrt()  # -> (params["w"] * x).exp().sum().sqrt()
made.append(norm({"w": w}, torch.ones(3)))
ACT = {
    'id': lambda t: t,
    'root': lambda t: torch.sqrt(t),  # -> torch.sqrt(t)
}
made.append(ACT['root'](w))

# comprehensions and generators
made += [
    part.sqrt()  # -> part.sqrt()
    for part in w[:1].unbind()
]
made.append(sum(part.sqrt() for part in w[:1].unbind()))  # -> part.sqrt()

# classes
class Box:
    ROOT = w.sqrt()  # -> w.sqrt()
    @property
    def scale(self):
        return w.sqrt()  # -> w.sqrt()
made += [Box.ROOT, Box().scale]
class Lazy:
    def __getattr__(self, name):
        return getattr(torch, name)
class Act:
    def __call__(self, x):
        return Lazy().sqrt(x)  # -> Lazy().sqrt(x)
made.append(Act()(w))
@dataclasses.dataclass
class Holder:
    scale: torch.Tensor
    def __post_init__(self):
        self.root = self.scale.sqrt()  # -> self.scale.sqrt()
made.append(Holder(w).root)

# python's own that calls
root = functools.partial(torch.sqrt)
made.append(root(w))  # -> root(w)
made.append(functools.reduce(lambda a, b: a + b.sqrt(), w[:1].unbind(), 0))  # -> b.sqrt()
made += list(map(torch.Tensor.sqrt, [w]))  # -> list(map(torch.Tensor.sqrt, [w]))
made.append(operator.truediv(w + 1, w))  # -> operator.truediv(w + 1, w)
nll = typing_extensions.deprecated("as torch does it")(nn.functional.smooth_l1_loss)
made.append(nll(w, torch.zeros(3)))  # -> nll(w, torch.zeros(3))
async def loss(x):
    await asyncio.sleep(0)
    return x.sqrt().sum()  # -> x.sqrt()
async def waited():
    made.append(await loss(w))
asyncio.run(waited())

# statements
y = w + 1
y /= w  # -> y /= w
made.append(y)
if (y := w.sqrt()).sum() >= 0:  # -> w.sqrt()
    made.append(y)
made.append(w.sqrt() if w.numel() else w.exp())  # -> w.sqrt()

# code from elsewhere
space = {'w': w}
exec('\n\ny = w.sqrt()', space)
made.append(space['y'])
made.append(eval('w.sqrt()'))
exec(compile('y = w.sqrt()', 'cell 7', 'exec'), space)
made.append(space['y'])
text = "def f(t):\n    return t.sqrt()\n"
linecache.cache["<made>"] = (len(text), None, text.splitlines(True), "<made>")
exec(compile(text, "<made>", "exec"), space)
made.append(space["f"](w))
exec(compile(open('part.txt').read(), 'part.txt', 'exec'), space)
made.append(space['y'])
made.append(runpy.run_path('part.py', {'w': w})['y'])
spec = importlib.util.spec_from_file_location("other", "lib/other-name.py")
other = importlib.util.module_from_spec(spec)
spec.loader.exec_module(other)
made += [other.f(w), root_loss(w)]
total = sum(one.sum() for one in made)
total.backward()
"""

FILES = {
    # Code equal to that of the exec'd texts, but for the file.
    "part.txt": "# a part\n\ny = w.sqrt()\n",
    "part.py": "y = w.sqrt()\n",
    "lib/other-name.py": "def f(x):\n    return x.sqrt()\n",
    "tools/__init__.py": "",
    "tools/constants.py": "EPS = 0.0\n",
    "tools/losses.py": "import torch\nfrom tools.constants import *\n\n"
    "def root_loss(x):\n    return torch.sqrt(x + EPS).sum()\n",
}

ELSEWHERE = [
    ("<made>", 2, "t.sqrt()"),
    ("<string>", 1, ""),
    ("<string>", 3, ""),
    ("cell 7", 1, ""),
    ("lib/other-name.py", 2, "x.sqrt()"),
    ("part.py", 1, "w.sqrt()"),
    ("part.txt", 3, "w.sqrt()"),
    ("tools/losses.py", 5, "torch.sqrt(x + EPS)"),
]


OPS = ("SqrtBackward0", "DivBackward0", "SmoothL1LossBackward0")


def test_an_operation_has_its_line_and_expression(session: Session) -> None:
    for name, text in FILES.items():
        (session.folder / name).parent.mkdir(exist_ok=True)
        session.write(text, name)
    path = session.write(PROGRAM)
    graph = session.look_at(str(path)).graph
    origins = [graph.origin_of(node) for node in graph.nodes if node.op in OPS]
    found = {(one.file, one.line, one.expression) for one in origins if one}
    assert None not in origins
    lines = enumerate(path.read_text("utf-8").splitlines(), 1)
    marked = [(at, told[1]) for at, line in lines if (told := re.search(r"# -> (.*)", line))]
    own = {("program.py", at, told.replace(r"\n", "\n")) for at, told in marked}
    assert len(own) == len(marked)
    assert found == own | set(ELSEWHERE)
