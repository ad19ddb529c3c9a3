"""``gradscope memory``: its totals are those of torch's own hooks, and looking changes nothing."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import pytest
import torch

from gradscope.model.studies import Holding, Memory
from gradscope.render import as_text
from gradscope.render.answers.memory import MemoryAnswer
from gradscope.render.options import Options
from gradscope.render.words.numbers import size
from tests.bare import bytes_kept
from tests.conftest import ROOT, process_preserved
from tests.looking import Session
from tests.test_page import packed

COUNTED: tuple[Holding, ...] = ("activation", "parameter", "buffer", "input")
"""What torch's saved-tensor hooks see; the rest they cannot know of."""

HEAD = "import torch\nfrom torch import nn\ntorch.manual_seed(0)"
PROGRAMS = {
    "transformer": """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln, self.qkv, self.proj = nn.LayerNorm(16), nn.Linear(16, 48), nn.Linear(16, 16)
        self.drop = nn.Dropout(0.1)
        self.register_buffer("mask", torch.ones(8, 8).tril().bool())
    def forward(self, x):
        q, k, v = self.qkv(self.ln(x)).chunk(3, -1)
        scores = (q @ k.transpose(-2, -1)).masked_fill(~self.mask, float("-inf"))
        return x + self.drop(self.proj(scores.softmax(-1) @ v)) * 0.5
emb, blocks = nn.Embedding(11, 16), nn.Sequential(Block(), Block())
idx = torch.randint(11, (4, 8))
loss = nn.functional.cross_entropy((blocks(emb(idx)) @ emb.weight.T).flatten(0, 1), idx.flatten())
loss.backward()
""",
    "custom Function": """
class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, beta):
        s = torch.sigmoid(x * beta)
        ctx.save_for_backward(x, s, None)
        ctx.table = [torch.ones(100), "words"]
        return x * s
    @staticmethod
    def backward(ctx, g):
        x, s, _ = ctx.saved_tensors
        return g * (s + x * s * (1 - s)), None
x = torch.randn(40, 3, requires_grad=True)
loss = Swish.apply(x[3:], 2.0).exp().sum()
loss.backward()
""",
    "checkpoint": """
from torch.utils.checkpoint import checkpoint
ran = []
class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(24, 24)
    def forward(self, x):
        ran.append(1)
        return torch.tanh(self.fc(x)) * x.sigmoid()
layers = nn.ModuleList(Layer() for _ in range(3))
data = h = torch.randn(10, 24)
for layer in layers:
    h = checkpoint(layer, h, use_reentrant=False)
loss = h.square().sum()
loss.backward()
""",
    "views, sparse and complex": """
table = torch.randn(20, 3, requires_grad=True)
rows = torch.nn.functional.embedding(torch.tensor([1, 5, 5]), table, sparse=True)
big = torch.randn(100, 100).mul(2) * table.sum()
z = torch.view_as_complex(torch.randn(30, 2)) * table[0, 0]
matrix = torch.eye(3).to_sparse()
one = torch.sparse.mm(matrix, rows)
loss = (big[0].sin() * 3).sum() + (z * z.conj()).real.sum() + one.square().sum() + 7
loss.backward()
""",
}
MODELS = {name: HEAD + text for name, text in PROGRAMS.items()}


class AtBackward(BaseException):
    """Ends a program at its first backward call, whose root it has."""


def counted_by_hooks(path: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """The bytes of all storages that hooks of torch's hold when the program calls backward."""

    def backward(root: torch.Tensor, *_: object) -> None:
        raise AtBackward(root)

    def made() -> list[torch.Tensor]:
        with monkeypatch.context() as patch, process_preserved():
            patch.setattr(torch.Tensor, "backward", backward)
            patch.setattr(sys, "path", [str(path.parent), *sys.path])
            patch.setattr(sys, "argv", [str(path)])
            with pytest.raises(AtBackward) as ended:
                runpy.run_path(str(path), run_name="__main__")
        return [*ended.value.args]

    return bytes_kept(made)


def memory_at(session: Session, *arguments: str) -> Memory:
    """The answer of ``gradscope memory``."""
    report = session.look_at(*arguments, command="memory")
    assert report.memory is not None
    return report.memory


@pytest.mark.parametrize("name", MODELS)
def test_the_total_is_that_of_saved_tensor_hooks(
    name: str, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = session.write(MODELS[name])
    memory = memory_at(session, str(path))
    assert memory.total(*COUNTED) == counted_by_hooks(path, monkeypatch)
    assert memory.total("activation") > 0


@pytest.mark.parametrize("example", ["char_gpt/train.py", "convnet/train.py", "blackbox/train.py"])
def test_and_so_it_is_in_real_trainings(
    example: str, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = ROOT / "examples" / example
    memory = memory_at(session, str(path))
    assert memory.total(*COUNTED) == counted_by_hooks(path, monkeypatch)
    assert memory.total("activation") > 10_000


HOOKED = """
import torch
ran = []
def pack(tensor):
    return tensor.clone()
def unpack(tensor):
    ran.append("unpacked")
    return tensor
x = torch.randn(50, requires_grad=True)
with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
    y = x.exp().sin()
with torch.autograd.graph.save_on_cpu():
    y = y.cos()
loss = y.exp().sum()
print(ran)
loss.backward()
print(ran)
"""


def test_no_hook_of_the_program_runs(session: Session) -> None:
    path = session.write(HOOKED)
    done = session.cli("memory", str(path), "--run-on", "-o", "report.json")
    assert done.out == "[]\n['unpacked', 'unpacked']\n"
    memory = memory_at(session, str(path))
    assert len(memory.hidden) == 3
    assert memory.total("packed") == 3 * 200
    assert memory.total("activation") == 200  # of the last exp alone
    shown = session.cli("memory", str(path)).out
    assert "not counted: 2 saved tensors behind unpack" in shown
    assert "save_on_cpu" in shown
    assert "600 B that saved-tensor hooks of the program packed" in shown


WRITTEN_INTO = """
import torch
w = torch.ones(50, requires_grad=True)
h = torch.zeros(2, 50) * w.sum()
h[0].mul_(torch.ones(50) + w)
h[1].copy_(w)
h.sum().backward()
"""


def test_what_an_in_place_change_of_a_view_saved_is_said_to_be_unknown(session: Session) -> None:
    path = session.write(WRITTEN_INTO)
    report = session.look_at(str(path), command="memory")
    assert report.memory is not None
    nodes = [report.graph.nodes[one.node].op for one in report.memory.hidden]
    assert nodes == ["CopySlices", "CopySlices"]
    shown = " ".join(session.cli("memory", str(path)).out.split())
    assert "not counted: anything saved by 2 nodes for in-place changes of views" in shown


def test_a_checkpoint_is_not_computed_again(session: Session) -> None:
    path = session.write(MODELS["checkpoint"] + "print(len(ran))\n")
    done = session.cli("memory", str(path), "--run-on", "-o", "report.json")
    assert done.out == "6\n"  # forward, and backward's own
    memory = memory_at(session, str(path))
    assert all(one.recomputed for one in memory.hidden)
    # Each part keeps what it started from: the data, and the results of two layers.
    inputs = [one for one in memory.kept if one.holders[0][1] == "checkpoint input"]
    assert sorted(one.holding for one in inputs) == ["activation", "activation", "input"]
    assert "of checkpointed parts are not kept" in session.cli("memory", str(path)).out


def test_what_a_ctx_holds_besides_is_told_apart(session: Session) -> None:
    path = session.write(MODELS["custom Function"])
    memory = memory_at(session, str(path))
    (table,) = (one for one in memory.kept if one.holding == "attribute")
    assert (table.bytes, table.holders[0][1]) == (400, "ctx.table")
    assert (
        "400 B that custom Functions keep as plain attributes"
        in session.cli("memory", str(path)).out
    )


FREED = """
import torch
x = torch.randn(5, requires_grad=True)
y = x.exp()
loss = y.sum()
loss.backward()
try:
    {second}.backward()
except RuntimeError:
    print("refused")
"""


def test_a_freed_graph_names_the_call_that_freed_it(session: Session) -> None:
    done = session.told(FREED.format(second="loss"), "memory --call 2")
    assert done.status == 2
    assert "nothing is kept any more: `loss.backward()` at " in done.err
    assert "program.py:5 has freed this graph" in done.err
    assert "--call N" in done.err


def test_a_half_freed_graph_is_counted_as_far_as_it_is_there(session: Session) -> None:
    path = session.write(FREED.format(second="y.sin().sum()"))
    memory = memory_at(session, str(path), "--call", "2")
    assert memory.total("activation") == 20
    assert len(memory.freed) == 1
    done = session.cli("memory", str(path), "--call", "2")
    assert "1 node whose saved tensors an earlier backward call has freed" in done.out


WASTE = """
import torch
scale = torch.ones((), requires_grad=True)
def loss():
    big = torch.randn(1000, 100) * scale
    again = [(torch.randn(1000, 100) * scale)[2].cos().sum() for _ in range(4)]
    return big[0].exp().sum() + big[1].sin().sum() + sum(again)
"""


def test_a_slice_that_keeps_the_whole_is_named(session: Session) -> None:
    session.write(WASTE)
    done = session.cli("memory", "program.py::loss", "--width", "200")
    assert "big[1].sin() (program.py:6) saved 400 B of a storage of 391 KiB, all of" in done.out
    # What a loop does is told once.
    assert "[2].cos() (program.py:5) saved 400 B of a storage of 391 KiB, 4 times, all" in done.out
    assert done.out.count("of a storage of") == 2


def test_tables(session: Session) -> None:
    everything = session.told(MODELS["transformer"], "memory --width 80").out
    assert max(map(len, everything.splitlines())) <= 80
    assert [line.split()[-1] for line in everything.splitlines() if "share" in line] == [
        "expression",
        "module",
        "op",
        "dtype",
    ]
    modules = session.cli("memory", "program.py", "--by", "module").out
    assert "*.ln ×2" in modules
    assert "expression" not in modules
    tables = {}
    for options in (("--top", "2"), ("--top", "-2"), ("--all",)):
        told = session.cli("memory", "program.py", "--by", "line", *options).out.splitlines()
        tables[options[-1]] = [line.split() for line in told[told.index("") + 2 :]]
    first, last, whole = tables.values()
    assert first[:2] == whole[:2] and last[:2] == whole[-2:]
    assert len(first) == len(last) == 3 and first[2][0] == "…"
    assert len(whole) > 4


@pytest.mark.parametrize("by", ["line", "module", "op", "dtype"])
def test_every_table_adds_up_to_the_total(by: str, session: Session) -> None:
    report = session.look(MODELS["transformer"], command="memory")
    assert report.memory is not None
    groups = MemoryAnswer(report, Options()).groups(by)
    assert sum(group.bytes for group in groups) == report.memory.total("activation")


def test_a_picture_shows_what_each_node_saved(session: Session) -> None:
    report = session.look(MODELS["transformer"], command="memory")
    assert report.memory is not None
    text = as_text(report, "dot")
    assert f"{size(report.memory.total('activation'))} saved for backward" in text
    shares = re.findall(r"[\d.]+ [KM]?i?B saved · ([\d.]+)%", text)
    assert sum(map(float, shares)) == pytest.approx(100, abs=1)


def test_a_page_begins_with_what_each_node_saved(session: Session) -> None:
    words = ("-c", "a.exp().sum()", "--let", "a=[1, 2, 3, 4, 5, 6, 7, 8, 9]")
    assert session.cli("memory", *words, "-o", "page.html").status == 0
    data = packed((session.folder / "page.html").read_text("utf-8"))
    assert "36 B of activations kept for backward" in " ".join(data["answer"].split())
    (shown, *_) = data["overlays"]
    assert (shown["name"], sum(shown["bytes"].values()), data["overlay"]) == ("saved bytes", 36, 0)
    nothing = session.cli("memory", "-c", "(x + 1).sum()", "--let", "x=[1,2]")
    assert (nothing.status, "0 B of activations" in nothing.out) == (0, True)


NEEDS_CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")

ON_CUDA = """
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(300, 700), nn.GELU(), nn.Linear(700, 500), nn.Tanh()).cuda()
x = torch.randn(130, 300, device="cuda")
net(x).sum().backward()  # what cuBLAS allocates once is there from now on
net.zero_grad()
before = torch.cuda.memory_allocated()
loss = net(x).square().sum()
after = torch.cuda.memory_allocated()
loss.backward()
"""


@NEEDS_CUDA
def test_on_cuda_the_total_is_what_the_allocator_says(session: Session) -> None:
    path = session.write(ON_CUDA)
    with process_preserved():
        seen = runpy.run_path(str(path))
    memory = memory_at(session, str(path), "--call", "2")
    # The allocator gives whole blocks of 512 bytes; the loss itself is held and not saved.
    blocks = [-(-one.bytes // 512) * 512 for one in memory.kept if one.holding == "activation"]
    assert seen["after"] - seen["before"] == sum(blocks) + 512
