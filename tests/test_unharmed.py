"""Programs that python runs and that a look at them once broke, changed, or told wrongly."""

from __future__ import annotations

import re
import textwrap

import pytest

from tests.conftest import python_says
from tests.fuzz.alike import alike
from tests.fuzz.files import in_turn
from tests.fuzz.trial import COMMANDS
from tests.fuzz.writer import telling
from tests.looking import Done, Session, leaf_named, new_gradient

MADE_ANEW = """
def scaled(x, table):
    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x): return x * table.mean()
        @staticmethod
        def backward(ctx, g): return g * table.mean()
    return Scale.apply(x)
w = torch.ones(3, requires_grad=True)
refs = []
for step in range(9):
    t = torch.ones(1000); refs.append(weakref.ref(t))
    scaled(w, t).sum().backward()
del t; gc.collect(); print(sum(r() is not None for r in refs) < 2)
del refs
"""

PROGRAMS = {
    "a Function that keeps running statistics": """
class F(torch.autograd.Function):
    running = torch.ones(3)
    @staticmethod
    def forward(ctx, x, seen, more):
        F.running.mul_(0.9).add_(x)
        seen.data.add_(1)
        more.n += 1; more.log["n"].append(more.n)
        return x * 2
    @staticmethod
    def backward(ctx, g): return g * 2, None, None
class More: n, log = 0, {"n": []}
x, seen, more = torch.ones(3, requires_grad=True), torch.zeros(1), More()
for _ in range(2):
    # What it has kept is saved for backward, which minds its version.
    (F.apply(x, seen, more) * F.running).sum().backward()
print(x.grad, F.running, F.running._version, seen, more.n, more.log)
""",
    "a thread that adds to what a Function reads": """
import threading
items, made, ends = [], 0, threading.Event()
def fill():
    global made
    while not ends.is_set():
        items.append(1); made += 1
class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x * (2 + 0 * len(items))
    @staticmethod
    def backward(ctx, g): return g * (2 + 0 * len(items))
thread = threading.Thread(target=fill); thread.start()
x = torch.ones(3, requires_grad=True)
F.apply(x).sum().backward()
ends.set(); thread.join(); print(x.grad, made - len(items))
del items, made, ends, thread
""",
    "a Function whose helper counts around it": """
import collections, functools, itertools
count, by, ids = 0, collections.Counter(), itertools.count()
def note(x):
    global count
    count += 1; by[len(x)] += 1
def made():
    calls = 0
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            nonlocal calls
            calls += 1; note(x)
            return x * 2
        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, g): note(g); return g * 2
    return F, lambda: calls
class G(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): ctx.id = next(ids); return x * 3
    @staticmethod
    def backward(ctx, g): return g * 3
F, calls = made()
x = torch.ones(3, requires_grad=True)
for _ in range(2): G.apply(F.apply(x)).sum().backward()
print(x.grad, count, by, calls(), next(ids))
""",
    "a Function that draws from a generator on ctx": """
class Noise(torch.autograd.Function):
    @staticmethod
    def forward(ctx,x): ctx.gen=torch.Generator().manual_seed(0); return x*2
    @staticmethod
    def backward(ctx,g): return g*2+torch.randn(g.shape,generator=ctx.gen)*.1
x=torch.ones(3,requires_grad=True)
Noise.apply(x).sum().backward()
print(x.grad)
""",
    "a Function that moves an iterator on ctx": """
class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.scales = iter([2.0, 3.0, 5.0])
        return x * 2
    @staticmethod
    def backward(ctx, gradient):
        return gradient * next(ctx.scales)
x = torch.ones(3, requires_grad=True)
F.apply(x).sum().backward()
print(x.grad)
""",
    "a Function that adds to the gradient of a weight itself": """
class Lin(torch.autograd.Function):
    @staticmethod
    def forward(ctx,x,w):
        ctx.save_for_backward(x); ctx.w=w
        return x@w.t()
    @staticmethod
    def backward(ctx,g):
        x,=ctx.saved_tensors
        ctx.w.main_grad.add_(g.t()@x)
        return g@ctx.w, None
w=torch.nn.Parameter(torch.ones(2,3)); w.main_grad=torch.zeros(2,3)
x=torch.ones(4,3,requires_grad=True)
Lin.apply(x,w).sum().backward()
print(w.main_grad)
""",
    "a Function whose backward warns": """
class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx,x): return x*2
    @staticmethod
    def backward(ctx,g):
        warnings.warn('backward is slow here')
        return g*2
x=torch.ones(3,requires_grad=True)
F.apply(x).sum().backward()
print(x.grad)
""",
    "gradients that are added in place": """
for size in (3, 500, 70_000):
    x = torch.ones(size, requires_grad=True)
    (x.exp() * x.tanh()).sum().backward()
    print(x.grad._version)
""",
    "a weak reference of the program forbids a swap": """
p, q = torch.ones(3, requires_grad=True), torch.zeros(3, requires_grad=True)
(p * 2).sum().backward()
held = weakref.ref(p)
try:
    torch.utils.swap_tensors(p, q)
except RuntimeError as error:
    print(error)
""",
    "autograd.grad on meta tensors": """
with torch.device("meta"):
    x = torch.ones(30, requires_grad=True)
    for _ in range(8):
        print(torch.autograd.grad((x * x).sum(), x)[0].shape)
        (x * 3).sum().backward()
""",
    "functions of torch that the program replaces": """
import torch.nn.functional as F
own_backward, own_dropout = torch.Tensor.backward, F.dropout
class Counted:
    __hash__ = None
    def __call__(self, *args, **kwargs):
        print("dropout")
        return own_dropout(*args, **kwargs)
def backward(self, *args, **kwargs):
    print("backward")
    return own_backward(self, *args, **kwargs)
torch.Tensor.backward, F.dropout = backward, Counted()
torch.manual_seed(0)
x = torch.ones(3, requires_grad=True)
F.dropout(x * 2, 0.5).sum().backward()
print(x.grad)
torch.Tensor.backward, F.dropout = own_backward, own_dropout
""",
    "Functions made anew, each with what it closes over": MADE_ANEW,
    "Functions made anew, in a block that is recorded by itself": "import gradscope\n"
    f"with gradscope.record(doctor=True):\n{textwrap.indent(MADE_ANEW, '    ')}",
    "a batch that is skipped is let go of": """
class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x*2
    @staticmethod
    def backward(ctx, g): raise ValueError("no")
def f():
    global wl
    x = torch.randn(3, requires_grad=True)
    y = F.apply(x); wl = weakref.ref(y)
    try: y.sum().backward()
    except ValueError: print("skip batch")
f(); gc.collect(); print("freed", wl() is None)
for i in range(2): torch.nn.Linear(4,4)(torch.ones(1,4)).sum().backward()
gc.collect(); print("freed", wl() is None)
""",
    "a graph whose backward failed is let go of at once": """
gc.disable()
def fail(gradient): raise ValueError("hook")
kept = []
for step in range(4):
    w = torch.ones(3, requires_grad=True)
    y = w * 2
    y.register_hook(fail)
    loss = y.sum()
    try: loss.backward()
    except ValueError: pass
    kept += [weakref.ref(y), weakref.ref(loss)]
    del y, loss
    print(sum(one() is not None for one in kept))
for step in range(3):
    w = torch.ones(3, requires_grad=True)
    loss = w.exp().sum()
    loss.backward()
    try: loss.backward()
    except RuntimeError: pass
    kept.append(weakref.ref(loss))
    del loss
    print(sum(one() is not None for one in kept))
""",
    "a vectorised gradient is let go of": """
def f():
    global w, wl
    x = torch.randn(3, requires_grad=True); w = weakref.ref(x)
    y = x**2; wl = weakref.ref(y)
    torch.autograd.grad(y, x, torch.eye(3), is_grads_batched=True)
f(); gc.collect(); print("freed", w() is None, wl() is None)
""",
    "operands of a call that failed are let go of": """
lin=torch.nn.Linear(3,3)
x=torch.randn(2,2); w=weakref.ref(x)
lin(torch.ones(1,3)).sum().backward()
try: torch.mm(x, lin.weight)
except RuntimeError: print("no")
del x; gc.collect(); print(w() is None)
""",
    "an error in a thread": """
class Fails(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return torch.nn.functional.linear(x, torch.ones(2, 2))
net = nn.Linear(2, 2)
def work():
    torch.nn.functional.relu(Fails.apply(net(torch.ones(3, 2))[0, :1]))
worker = threading.Thread(target=work, name="worker")
worker.start(); worker.join()
x = torch.ones(3, requires_grad=True)
(x * 2).sum().backward()
sys.exit(3)
""",
    "warnings of torch, each at its line": """
net = nn.Linear(3, 2)
net.register_full_backward_pre_hook(lambda module, gradient: None)
for _ in range(2):
    net(torch.randn(2, 3)).sum().backward()
net(torch.randn(2, 3)).sum().backward()
nn.functional.softmax(net(torch.ones(2, 3)))
nn.Sequential(nn.Softmax())(torch.ones(2, 2))
""",
    "functions of torch are pickled": """
from torch import distributed, nn
for one in (nn.utils.clip_grad_norm_, nn.utils.clip_grad_value_, nn.utils.clip_grad.clip_grad_norm_,
            distributed.all_gather, distributed.all_to_all_single, torch.autograd.backward,
            torch.optim.Optimizer.zero_grad, nn.Module.register_full_backward_hook):
    print(one.__name__, pickle.loads(pickle.dumps(one)) is one)
x = torch.ones(3, requires_grad=True)
x.exp().sum().backward()
print(x.grad)
""",
    "a list that counts how often it is gone through": """
class Counted(list):
    times = 0
    def __iter__(self):
        Counted.times += 1
        return super().__iter__()
x = torch.ones(3, requires_grad=True)
for _ in range(12):
    torch.cat(Counted([x * 2, x])).sum().backward()
print(Counted.times, x.grad)
""",
}


ASKED = {
    name: (telling(text), [*COMMANDS, ("backward", "--values", "--saved", "--histograms")])
    for name, text in PROGRAMS.items()
}


test_it_does_what_it_does_alone = alike(in_turn(ASKED), ASKED)


@pytest.mark.parametrize("command", ["check", "doctor"])
def test_a_timeout_reaches_the_program_wherever_we_are(command: str, process: Session) -> None:
    # Not among the programs above: how far it comes is chance.
    text = """
    import torch, signal
    rung = caught = 0
    class Timeout(Exception): pass
    def ring(s, f):
        global rung; rung += 1; raise Timeout
    signal.signal(signal.SIGALRM, ring)
    w = torch.ones(4, 4, requires_grad=True)
    while rung < 8:
        seen = rung
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.01)
            while rung == seen: w.tanh().sum().backward()
        except Timeout: caught += torch.is_grad_enabled()
    print("rung", rung, "caught", caught)
    """
    on = ["--steps", "all"] if command == "doctor" else ["--run-on"]
    done = process.cli(command, str(process.write(text)), *on, "-q", "-o", "report.json")
    assert done.out.startswith("rung 8 caught 8\n")
    assert "internal error" not in done.out + done.err


@pytest.mark.parametrize("command", ["check", "doctor"])
def test_asyncio_hears_of_a_signal_once_also_while_we_look(command: str, process: Session) -> None:
    # Not among the programs above: a backward that we run as well sends one more.
    text = """
    import asyncio, os, signal, torch
    heard = []
    class Sends(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a): return a * 2
        @staticmethod
        def backward(ctx, g):
            open("sent.txt", "a").write("x")
            os.kill(os.getpid(), signal.SIGUSR1)
            return g * 2
    async def main():
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, heard.append, 1)
        Sends.apply(torch.ones(3, requires_grad=True)).sum().backward()
        await asyncio.sleep(0.1)
        print("heard", len(heard), "of", len(open("sent.txt").read()))
    asyncio.run(main())
    """
    on = ["--steps", "all"] if command == "doctor" else ["--run-on"]
    done = process.cli(command, str(process.write(text)), *on, "-q", "-o", "report.json")
    heard, sent = re.findall(r"heard (\d+) of (\d+)", done.out)[0]
    assert heard == sent and int(sent) > 1


@pytest.mark.parametrize("command", ["backward", "doctor"])
def test_a_profile_holds_nothing_of_ours(command: str, process: Session) -> None:
    # Not among the programs above: torch's profiler writes the time of day to stderr.
    text = """
    import torch
    x = torch.ones(300, requires_grad=True)
    (x * 2).sum().backward()
    with torch.autograd.profiler.profile() as profile:
        y = (x * 2).sum()
        y.backward()
    print(sorted((event.key, event.count) for event in profile.key_averages()))
    """
    path = str(process.write(text))
    on = ["--steps", "all"] if command == "doctor" else ["--run-on"]
    done = process.cli(command, path, *on, "-q", "-o", "report.json")
    assert done.out.startswith(python_says(path).out)


@pytest.mark.parametrize("command", ["backward", "doctor"])
def test_a_forked_child_says_nothing_of_ours(command: str, process: Session) -> None:
    text = """
    import os, torch
    x = torch.ones(3, requires_grad=True)
    y = (x * x).sum()
    child = os.fork()
    y.backward()
    os.write(1, b"child\\n" if child == 0 else b"parent\\n")
    if child:
        os.waitpid(child, 0)
    """
    on = [] if command == "doctor" else ["--run-on"]
    done = process.cli(command, str(process.write(text)), *on)
    assert sorted(done.out.splitlines()[:2]) == ["child", "parent"]
    assert done.out.count("leaf  shape") + done.out.count("no findings") == 1
    assert done.status == 0
    assert done.err == ""


@pytest.mark.parametrize(
    "command", ["trace", "backward", "doctor", "memory", "check", "explain", "depends"]
)
def test_what_children_did_is_said_not_to_be_watched(command: str, process: Session) -> None:
    text = """
    import subprocess, sys, torch
    subprocess.run([sys.executable, "-c", "print('trained')"])
    """
    on = ("--on", "x") if command == "depends" else ()
    done = process.cli(command, str(process.write(text)), *on)
    assert done.out == "trained\n"
    assert "child processes is not watched" in done.err
    assert done.status == (0 if command in ("trace", "memory", "depends") else 2)


def test_a_fault_of_ours_is_no_all_clear(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    # torch itself does not ask python for a device, and we do.
    text = """
    import torch
    class Broken(torch.Tensor):
        asked = True
        @property
        def device(self): return torch.device("cpu") if Broken.asked else 1 / 0
    x = torch.ones(3, requires_grad=True)
    for step in range(3):
        (x * 2).sum().backward()
        x.grad = None
    y = torch.ones(2).as_subclass(Broken).requires_grad_()
    z = (y * 2).sum()
    Broken.asked = False
    z.backward()
    Broken.asked = True
    print("ran")
    """
    path = str(session.write(text))
    done = session.cli("doctor", path)
    assert done.out.startswith("ran\n")
    assert done.status == 4
    assert "could not look at backward call 4" in done.out
    assert "3 backward calls watched · 1 not looked at because of an internal error" in done.out
    done = session.cli("backward", "--call", "4", "--run-on", path)
    assert (done.status, done.out) == (4, "ran\n")
    what, hint = done.err.splitlines()
    assert "internal error: ZeroDivisionError: division by zero (" in what
    assert "GRADSCOPE_TRACEBACK=1" in hint
    monkeypatch.setenv("GRADSCOPE_TRACEBACK", "1")
    told = session.cli("backward", "--call", "4", "--run-on", path)
    assert "gradscope: Traceback (most recent call last):" in told.err


# ---------------------------------------------------------------- which call is shown

PENALTY = """
import torch
x = torch.linspace(0, 1, 5).requires_grad_()
w = torch.tensor(2.0, requires_grad=True)
for step in range(2):
    u = (w * x) ** 2
    du = torch.autograd.grad(u.sum(), x, create_graph=True)[0]
    ddu = torch.autograd.grad(du.sum(), x, create_graph=True)[0]
    loss = (du - 1).pow(2).mean() + ddu.mean()
    loss.backward()
"""

PASSED_OVER = (
    "second derivative: it goes back through torch.autograd.grad, calls 1 to 2 at program.py:6, "
    "program.py:7 (--call 1 shows the first)"
)


@pytest.mark.parametrize("command", ["trace", "backward", "explain", "memory", "check", "depends"])
def test_inner_gradients_are_passed_over_and_that_is_said(command: str, session: Session) -> None:
    on = ("--on", "x") if command == "depends" else ()
    report = session.look(PENALTY, *on, command=command)
    assert PASSED_OVER in report.notes
    assert report.graph.roots[0].label == "loss"
    if report.passes:
        assert report.passes[0].number == 3
    first = session.look(PENALTY, *on, "--call", "1", command=command)
    assert first.graph.roots[0].label != "loss"
    assert PASSED_OVER not in first.notes


def test_a_gradient_that_nothing_builds_on_is_the_answer(session: Session) -> None:
    text = """
    import torch
    x = torch.ones(3, requires_grad=True)
    g = torch.autograd.grad((x * x * x).sum(), x, create_graph=True)[0]
    """
    for more in ("print(g)", "(x * 2).sum().backward(); (x * 5).sum().backward()"):
        report = session.look(textwrap.dedent(text) + more + "\n")
        assert new_gradient(report, "x").values == (3, 3, 3)
        assert report.passes[0].number == 1


def test_steps_pass_over_inner_gradients(session: Session) -> None:
    report = session.look(PENALTY, "--steps", "2")
    assert [one.number for one in report.passes] == [3, 6]


# ---------------------------------------------------------------- waiting for a root

LATER = """
import torch
x = torch.ones(3, requires_grad=True)
loss = {before}
for i in range(2):
    (x * 2).sum().backward()
    loss = {then}
"""


def _looked_for(session: Session, before: str, then: str) -> Done:
    path = str(session.write(LATER.format(before=before, then=then)))
    return session.cli("backward", "--root", "loss", path, "-o", "report.json")


@pytest.mark.parametrize("before", ["0.0", "None", "torch.zeros(())", "[1]"])
def test_a_root_is_waited_for_while_it_is_something_else(before: str, session: Session) -> None:
    done = _looked_for(session, before, "(x * 3).sum()")
    assert done.status == 0
    assert done.err.startswith(
        "gradscope: wrote report.json\ngradscope: stopped at backward call 2"
    )


@pytest.mark.parametrize(
    ("then", "said"),
    [
        ("0.5", "--root loss is of type float, not a tensor"),
        ("torch.zeros(())", "--root loss carries no gradient history"),
    ],
)
def test_a_root_that_never_comes_is_said_at_the_end(then: str, said: str, session: Session) -> None:
    done = _looked_for(session, "0.0", then)
    assert done.status == 2
    assert done.err.startswith(f"gradscope: {said}")


def test_what_a_failing_node_received_is_known(session: Session) -> None:
    text = """
    import torch
    class Bad(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x): return x * 2
        @staticmethod
        def backward(ctx, g): raise ValueError("no")
    x = torch.ones(3, requires_grad=True)
    (Bad.apply(x * 1) * 3).sum().backward()
    """
    report = session.look(text)
    passed = report.passes[0]
    bad = next(node for node in report.graph.nodes if node.op == "Bad")
    assert passed.at(bad.id).values == (3, 3, 3)
    assert passed.at(leaf_named(report, "x").node).state == "not reached"
