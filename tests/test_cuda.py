"""What is so on a GPU too: a watched program does what it does alone, and nothing waits for the
device at every node."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch
from torch import nn

import gradscope
from tests.fuzz.compare import Difference
from tests.fuzz.process import spawned
from tests.fuzz.trial import COMMANDS, SPAWNED, Place, tried
from tests.fuzz.writer import telling
from tests.looking import Session

# Asking torch whether there is a GPU must not make one ready: a fork of this process could not use
# it then.
os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")

HEAD = """
import os
os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
import torch
from torch import nn
import torch.nn.functional as F
"""

SAME_EACH_TIME = HEAD + "torch.use_deterministic_algorithms(True)\n"

NET = """
net = nn.Sequential(nn.Linear(12, 32), nn.GELU(), nn.Dropout(0.3), nn.Linear(32, 4)).cuda()
x, y = torch.randn(16, 12, device="cuda"), torch.randint(4, (16,), device="cuda")
"""

PROGRAMS = {
    "a small GPT": SAME_EACH_TIME
    + """
class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 96), nn.GELU(), nn.Linear(96, width))
        self.heads, self.dropout = heads, nn.Dropout(0.1)
    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(self.first(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
        hidden = torch.ones(t, t, dtype=torch.bool, device=x.device).triu(1)
        seen = self.dropout(scores.masked_fill(hidden, float("-inf")).softmax(-1)) @ v
        x = x + self.out(seen.transpose(1, 2).reshape(b, t, c))
        return x + self.mlp(self.second(x))

class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(31, 48), nn.Embedding(16, 48)
        self.blocks = nn.Sequential(*(Block(48, 4) for _ in range(3)))
        self.head = nn.Linear(48, 31)
    def forward(self, tokens):
        places = torch.arange(tokens.shape[1], device=tokens.device)
        return self.head(self.blocks(self.tokens(tokens) + self.places(places)))

model = GPT().cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for _ in range(4):
    tokens = torch.randint(31, (8, 17), device="cuda")
    loss = F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    print(loss.item().hex())
""",
    "float16 that overflows": SAME_EACH_TIME
    + NET
    + """
scaler = torch.amp.GradScaler("cuda", init_scale=2.0**24)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2, fused=True)
for _ in range(12):
    with torch.autocast("cuda", torch.float16):
        loss = F.cross_entropy(net(x), y)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    print(loss.item().hex(), scaler.get_scale())
""",
    "checkpoints, with dropout": SAME_EACH_TIME
    + NET
    + """
from torch.utils.checkpoint import checkpoint
body = nn.Sequential(nn.Linear(12, 12), nn.Dropout(0.5), nn.Tanh()).cuda()
for is_reentrant in (False, True):
    inputs = x.clone().requires_grad_()
    loss = F.cross_entropy(net(checkpoint(body, inputs, use_reentrant=is_reentrant)), y)
    loss.backward()
    print(loss.item().hex())
""",
    "a whole step in a CUDA graph": HEAD
    + NET.replace("nn.Dropout(0.3)", "nn.Tanh()")
    + """
# Where a graph is kept for longer, torch warns once more of these streams: docs/unchanged.md.
getattr(torch.autograd.graph, "set_warn_on_accumulate_grad_stream_mismatch", id)(False)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2, capturable=True)
def step():
    optimizer.zero_grad(set_to_none=True)
    loss = F.cross_entropy(net(x), y)
    loss.backward()
    optimizer.step()
    return loss
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(3):
        step()
torch.cuda.current_stream().wait_stream(side)
graph = torch.cuda.CUDAGraph()
optimizer.zero_grad(set_to_none=True)
with torch.cuda.graph(graph):
    loss = step()
for _ in range(3):
    x.copy_(torch.randn(16, 12))
    graph.replay()
    print(loss.item().hex())
""",
    "a step that must not wait for the device": HEAD
    + NET
    + """
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2, foreach=True)
losses = []
for _ in range(4):
    torch.cuda.set_sync_debug_mode("error")
    loss = F.cross_entropy(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    torch.cuda.set_sync_debug_mode("default")
    losses.append(loss.detach())
print([one.item().hex() for one in losses])
""",
    "parts on the CPU": HEAD
    + NET
    + """
head = nn.Linear(4, 2)
bias = torch.zeros((), requires_grad=True)
for _ in range(2):
    loss = head(net(x).cpu()).square().mean() + bias.cuda().cpu()
    loss.backward()
    print(loss.item().hex(), head.weight.grad.norm().item().hex(), bias.grad)
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_watched_program_does_what_it_does_alone(name: str, tmp_path: Path) -> None:
    place, commands = Place(tmp_path), [*COMMANDS, ("doctor", "--thorough")]
    done = tried(telling(PROGRAMS[name]), place, commands, SPAWNED, is_known=True)
    assert not done.unusable
    plain = SPAWNED.plain(place, False)
    watched = spawned(["-m", "gradscope", "watch", "-q", str(place.program)], place.run, 60)
    # The rows follow on stdout when the program has ended, and before python does.
    ending = plain.out.index("== at exit ==")
    assert watched.out[:ending] == plain.out[:ending]
    assert not done.found, "\n".join(map(_told, done.found))


def _told(difference: Difference) -> str:
    return f"gradscope {' '.join(difference.command)}: {difference.kind}\n{difference.detail}"


BORN_NAN = """
import torch
scale = torch.zeros(3, device="cuda", requires_grad=True)
distance = (scale - scale.detach()).square().sum()
loss = torch.sqrt(distance)
loss.backward()
"""


def test_where_a_nan_is_born_is_found(session: Session) -> None:
    done = session.cli("doctor", str(session.write(BORN_NAN)))
    assert "GS102" in done.out and "program.py:4" in done.out, done.out


def _waits(layers: int, watched: bool) -> int:
    """How often the host waits for the device in one training step."""
    net = nn.Sequential(*(nn.Linear(16, 16) for _ in range(layers))).cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    x = torch.randn(4, 16, device="cuda")

    def step() -> None:
        optimizer.zero_grad()
        net(x).square().sum().backward()
        optimizer.step()

    rows: list[gradscope.Row] = []
    with gradscope.watch(net, every=1 if watched else 10**6, to=rows.append):
        for _ in range(3):
            step()
        torch.cuda.synchronize()
        kinds = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
        with torch.profiler.profile(activities=kinds, acc_events=True) as profile:
            step()
    return sum(one.name == "cudaStreamSynchronize" for one in profile.events())


def test_a_watched_step_waits_as_often_for_many_layers_as_for_few() -> None:
    assert _waits(40, watched=True) - _waits(40, watched=False) <= 2
    assert _waits(40, watched=True) == _waits(4, watched=True)


HALF = """
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(64, 4096), nn.ReLU(), nn.Linear(4096, 8)).cuda()
x, y = 3 * torch.randn(256, 64, device="cuda"), torch.randint(8, (256,), device="cuda")
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cuda", init_scale=128.0)
for _ in range(3):
    with torch.autocast("cuda", torch.float16):
        loss = nn.functional.cross_entropy(net(x), y)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
"""


def test_a_sum_beyond_float16_is_no_infinity(session: Session) -> None:
    done = session.cli("doctor", str(session.write(HALF)))
    assert "no findings" in done.out, done.out
