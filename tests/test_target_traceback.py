"""Tracebacks of a watched torch program, compared with those python prints without a watcher."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path
from typing import Any

import pytest
import torch

import gradscope.target
from gradscope.target import clean
from tests import forkserver
from tests.fuzz.process import ran

PROJECT = Path(gradscope.target.__file__).parents[2]

# All that a watcher does to a program: a mode, wrapped functions.
WATCHER = """
import torch
from torch.overrides import TorchFunctionMode


class Watch(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return self.call(func, args, kwargs or {})

    def call(self, func, args, kwargs):
        return func(*args, **kwargs)


mode = Watch()


def start():
    mode.__enter__()
    called = torch.nn.Module._call_impl
    torch.nn.Module._call_impl = lambda *args, **kwargs: called(*args, **kwargs)
    # In newer versions of torch it is written in C.
    backward, bound = torch.autograd.backward, vars(torch.autograd.Function)["apply"].__get__
    torch.autograd.backward = lambda *args, **kwargs: backward(*args, **kwargs)
    torch.autograd.Function.apply = classmethod(lambda cls, *args: bound(None, cls)(*args))
"""

DRIVER = """
import pathlib, sys
from gradscope.target import Program, clean, parse_target

def watch():
    import watcher
    watcher.start()

own = pathlib.Path(__file__).parent
sys.path.append(str(own))
ending = Program.prepare(parse_target(sys.argv[1])).run(on_torch=watch)
sys.modules["watcher"].mode.__exit__(None, None, None)
clean(ending.exception, own)
ending.show()
ending.finish()
"""

PROGRAM = """
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

class BadBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x * 2
    @staticmethod
    def backward(ctx, g): raise ValueError("in backward")

class BadForward(BadBackward):
    @staticmethod
    def forward(ctx, x): raise ValueError("in forward")

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Sequential(nn.Linear(5, 1)))
    def forward(self, x):
        return self.layers(x)

class Sub(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return super().__torch_function__(func, types, args, kwargs or {})

def chained():
    try:
        Net()(torch.ones(3))
    except RuntimeError as error:
        raise KeyError("chained") from error

def handling():
    try:
        Net()(torch.ones(3))
    except RuntimeError:
        F.relu("x")

one = torch.ones(2, requires_grad=True)
hooked = nn.Linear(2, 2)
hooked.register_forward_hook(lambda *_: None)
CASES = [
    lambda: F.relu("x"),
    lambda: F.max_pool2d(one, 2),
    lambda: torch.unique("x"),
    lambda: torch.meshgrid("x", indexing="ij"),
    lambda: torch.einsum("ij,jk", torch.ones(2, 2), torch.ones(3, 3)),
    lambda: F.cross_entropy(torch.ones(2, 3), torch.ones(4, 3)),
    lambda: F.softmax(torch.ones(3).as_subclass(Sub), dim=5),
    lambda: torch.ones(2) - "x",
    lambda: torch.ones(2).split("x"),
    lambda: one.backward(),
    lambda: torch.autograd.backward([one]),
    lambda: torch.autograd.grad(one, one),
    lambda: BadBackward.apply(one).sum().backward(),
    lambda: BadForward.apply(one),
    lambda: Net()(torch.ones(2, 3)),
    lambda: hooked(torch.ones(3)),
    lambda: nn.LSTM(2, 3)(torch.ones(1, 1, 5)),
    lambda: nn.MultiheadAttention(4, 2)(one, one, one),
    lambda: checkpoint(lambda x: F.relu(x)[5], one, use_reentrant=False),
    lambda: checkpoint(lambda x: F.relu(x)[5], one, use_reentrant=True),
    chained,
    handling,
]
errors = []
for case in CASES:
    try:
        case()
    except Exception as error:
        errors.append(error)
assert len(errors) == len(CASES)
half = len(errors) // 2
raise ExceptionGroup(
    "all", [ExceptionGroup("first", errors[:half]), ExceptionGroup("second", errors[half:])]
)
"""

BROKEN_TORCH = {
    "raises": "raise OSError('no libtorch')\n",
    "imports nothing": "import torch_has_no_such_part\n",
    "syntax error": "x = = 1\n",
    "raises deeper": "import importlib\nimportlib.import_module('torch.deeper')\n",
}


def python(words: list[str], directory: Path, command: str = sys.executable) -> tuple[int, str]:
    """Run python; return its status and what it wrote to stderr."""
    done = ran([command, *words], directory, PYTHONPATH=str(PROJECT))
    return done.returncode, done.stderr


def test_tracebacks_through_torch_are_those_of_python(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "watcher.py").write_text(WATCHER)
    (own / "driver.py").write_text(DRIVER)
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    fork = forkserver.script()
    plain = python([str(program)], tmp_path, fork)
    assert "in backward" in plain[1] and "_call_impl" in plain[1]
    assert python([str(own / "driver.py"), str(program)], tmp_path, fork) == plain


def test_a_torch_that_cannot_be_imported_fails_as_under_python(tmp_path: Path) -> None:
    (tmp_path / "driver.py").write_text(
        "import sys\n"
        "from gradscope.target import Program, parse_target\n"
        "ending = Program.prepare(parse_target(sys.argv[1])).run(on_torch=print)\n"
        "ending.show()\n"
        "ending.finish()\n"
    )
    for number, source in enumerate(BROKEN_TORCH.values()):
        place = tmp_path / str(number)
        (place / "torch").mkdir(parents=True)
        (place / "torch" / "__init__.py").write_text(source)
        (place / "torch" / "deeper.py").write_text("1 / 0\n")
        (place / "direct.py").write_text("import torch\n")
        (place / "named.py").write_text("import importlib\nimportlib.import_module('torch')\n")
        for script in ("direct.py", "named.py"):
            assert python([str(tmp_path / "driver.py"), script], place) == python([script], place)


INTERRUPTING = """
import sys
from torch.overrides import TorchFunctionMode

class Watch(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))

def interrupt_at(wanted, name):
    def look(frame, event, _):
        if event == wanted and frame.f_code.co_name == name:
            sys.setprofile(None)
            raise KeyboardInterrupt
    sys.setprofile(look)
"""


@pytest.mark.parametrize(
    ("event", "name"),
    [
        ("call", "handle_torch_function"),
        ("call", "_pop_mode_temporarily"),
        ("return", "_pop_mode_temporarily"),
    ],
)
def test_an_interrupt_on_the_way_to_us_or_back_shows_no_detour(
    event: str, name: str, tmp_path: Path
) -> None:
    ours: dict[str, Any] = {}
    exec(compile(INTERRUPTING, str(tmp_path / "watcher.py"), "exec"), ours)
    ours["Watch"]().__enter__()
    try:
        with pytest.raises(KeyboardInterrupt) as caught:
            ours["interrupt_at"](event, name)
            torch.nn.functional.relu(torch.ones(1))
    finally:
        # Torch itself loses a mode that it was about to put back.
        while torch._C._len_torch_function_stack():
            torch._C._pop_torch_function_stack()
    clean(caught.value, tmp_path)
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert [one.name for one in frames] == [
        "test_an_interrupt_on_the_way_to_us_or_back_shows_no_detour"
    ]


def test_a_refusal_of_torchs_dispatcher_stays() -> None:
    class Silent(torch.Tensor):
        @classmethod
        def __torch_function__(cls, *_: Any, **__: Any) -> Any:
            return NotImplemented

    with pytest.raises(TypeError) as caught:
        torch.nn.functional.relu(torch.ones(1).as_subclass(Silent))
    before = caught.value.__traceback__
    clean(caught.value)
    assert caught.value.__traceback__ is before


def test_exceptions_that_refer_to_each_other_are_cleaned_once() -> None:
    first, second = ValueError("first"), ValueError("second")
    first.__context__, second.__context__ = second, first
    group = ExceptionGroup("group", [first, second])
    try:
        raise first
    except ValueError:
        clean(group, own_directory=Path(__file__).parent)
    assert first.__traceback__ is None


def test_a_very_long_traceback_is_cleaned() -> None:
    def down(depth: int) -> int:
        return down(depth + 1)

    try:
        down(0)
    except RecursionError as error:
        clean(error, own_directory=Path(__file__).parent)
        assert error.__traceback__ is None
