"""The reports that the tests of saving, folding and drawing share, built by hand."""

from __future__ import annotations

import math
from collections.abc import Callable

import msgspec

from gradscope.model.observations import Finding, Location, NodeReference
from gradscope.model.plain import TensorInfo
from gradscope.model.report import Accumulation, GradientInfo, Origin, Report, Wall
from tests.program import Program, Value, gradient

HOSTILE = "</script>[/red]\"'\n\\N\u202e\U0001f642<b>&%s{}\x00\x1b[31m"
"""A name with everything that could act in some format."""


def layers(rounds: int) -> Report:
    """Equal modules one after the other, with numbers for names, as in ``nn.Sequential``."""
    program = Program("layers.py")
    x = program.leaf("x", data=(1.0,), shape=(4,))
    for layer in range(rounds):
        program.enter(str(layer), "Linear")
        weight = program.leaf(f"{layer}.weight", data=(1.0,), shape=(4,))
        x = program.op("MulBackward0", [(x, 0.9), (weight, 0.5)], (1,), "x * self.weight", "x")
        x = program.op("TanhBackward0", [(x, 1)], (1,), "torch.tanh(x)", "x")
        program.exit()
    return program.report((x, (1.0,)), labels=["loss"])


def small(backward: bool = True) -> Report:
    """A9: ``y = 3*a + 2*b*b + torch.log(c)``, and a gradient whose numbers can be followed by
    hand."""
    program = Program()
    program.line = 3
    a = program.leaf("a", data=(1, 2, 3), shape=(3,))
    program.line = 4
    b = program.leaf("b", data=(3, 4, 5), shape=(3,))
    program.line = 5
    c = program.leaf("c", data=(6, 7, 8), shape=(3,))
    program.line = 7
    three_a = program.op("MulBackward0", [(a, 3)], (3, 6, 9), "3*a")
    two_b = program.op("MulBackward0", [(b, 2)], (6, 8, 10), "2*b")
    square = program.op("MulBackward0", [(two_b, b.data), (b, two_b.data)], (18, 32, 50), "2*b*b")
    first = program.op("AddBackward0", [(three_a, 1), (square, 1)], (21, 38, 59), "3*a + 2*b*b")
    log = program.op(
        "LogBackward0", [(c, tuple(1 / x for x in c.data))], (1.8, 1.9, 2.1), "torch.log(c)"
    )
    whole = "3*a + 2*b*b + torch.log(c)"
    y = program.op("AddBackward0", [(first, 1), (log, 1)], (22.8, 39.9, 61.1), whole, "y")
    return program.report((y, (0.1, 1.0, 0.0001)), labels=["y"], backward=backward)


def scalars() -> Report:
    """A11 after the second backward: 3 + 3 = 6."""
    program = Program()
    a, b, c = (program.leaf(name, data=(1,)) for name in "abc")
    left = program.op("MulBackward0", [(a, 3)], (3,), "3*a")
    middle = program.op("PowBackward0", [(b, 4)], (2,), "2*b**2")
    right = program.op("LogBackward0", [(c, 1)], (0,), "log(c)")
    add = program.op("AddBackward0", [(left, 1), (middle, 1)], (5,), "3*a + 2*b**2")
    y = program.op("AddBackward0", [(add, 1), (right, 1)], (5,), "3*a + 2*b**2 + log(c)", "y")
    report = program.report((y, (1.0,)), labels=["y"])
    (backward,) = report.passes
    table = list(backward.gradients)
    entries = []
    for entry in backward.accumulations:
        (value,) = table[entry.new].values or ()
        table.append(gradient((2 * float(value),), ()))
        entries.append(Accumulation(entry.new, before=entry.new, after=len(table) - 1))
    again = msgspec.structs.replace(
        backward, gradients=tuple(table), accumulations=tuple(entries), number=2
    )
    return msgspec.structs.replace(report, passes=(again,))


def doublings(times: int = 9) -> Report:
    """A8: ``y = 2*x`` and then ``y = y*2`` in a loop."""
    program = Program("loop.py")
    x = program.leaf("x", data=(1, 1, 1), shape=(3,))
    program.line = 2
    y = program.op("MulBackward0", [(x, 2)], (2, 2, 2), "x*2", "y")
    program.line = 4
    for _ in range(times):
        y = program.op("MulBackward0", [(y, 2)], tuple(2 * v for v in y.data), "y*2", "y")
    return program.report((y, (0.1, 1.0, 0.0001)), labels=["y"])


def chain(length: int = 100_000, distinct: bool = False) -> Report:
    """A chain deeper than any recursion limit; ``distinct`` lines do not fold."""
    program = Program("chain.py")
    y = program.leaf("x", data=(1, 1), shape=(2,))
    for step in range(length):
        program.line = step + 2 if distinct else 2
        sign = -1 if step % 3 else 1
        y = program.op("NegBackward0", [(y, sign)], (1, 1), "-y", "y")
    return program.report((y, (1.0, 1.0)), labels=["y"])


def transformer(layers: int = 12) -> Report:
    """The shape of a language model: embeddings, blocks of attention and perceptron, head, loss."""
    program = Program("gpt.py")
    program.enter("gpt", "GPT")
    x = _embed(program)
    for layer in range(layers):
        x = _block(program, x, f"gpt.h.{layer}", shrink=0.6)
    x = _layer(program, "gpt.ln_f", "LayerNorm", "NativeLayerNormBackward0", x)
    logits = _layer(program, "gpt.head", "Linear", "MmBackward0", x)
    program.exit()
    program.line = 41
    words = "F.cross_entropy(logits, targets)"
    log = program.op("LogSoftmaxBackward0", [(logits, 0.5)], (0.1,), words)
    loss = program.op("NllLossBackward0", [(log, 0.25)], (3.2,), words, "loss")
    return program.report((loss, (1.0,)), labels=["loss"])


def _embed(program: Program) -> Value:
    program.line = 12
    parts = []
    for name in ("wte", "wpe"):
        program.enter(f"gpt.{name}", "Embedding")
        weight = program.leaf(f"gpt.{name}.weight", data=(0.02,), shape=(65, 64))
        expression = f"self.{name}(ids)"
        parts.append(program.op("EmbeddingBackward0", [(weight, 0.5)], (0.02,), expression))
        program.exit()
    return program.op("AddBackward0", [(part, 1) for part in parts], (0.04,), "tok + pos", "x")


def _block(program: Program, x: Value, path: str, shrink: float) -> Value:
    program.enter(path, "Block")
    program.line = 30
    for half, inner in (("attn", "Attention"), ("mlp", "MLP")):
        normed = _layer(program, f"{path}.ln_{half}", "LayerNorm", "NativeLayerNormBackward0", x)
        program.enter(f"{path}.{half}", inner)
        hidden = _layer(program, f"{path}.{half}.c_fc", "Linear", "AddmmBackward0", normed)
        program.line = 24
        bent = program.op("GeluBackward0", [(hidden, shrink)], (0.1,), "self.act(h)", "h")
        out = _layer(program, f"{path}.{half}.c_proj", "Linear", "AddmmBackward0", bent)
        program.exit()
        program.line = 30
        expression = f"x + self.{half}(self.ln_{half}(x))"
        x = program.op("AddBackward0", [(x, 1), (out, 1)], (0.1,), expression, "x")
    program.exit()
    return x


def _layer(program: Program, path: str, type: str, op: str, x: Value) -> Value:
    program.enter(path, type)
    program.line += 1
    weight = program.leaf(f"{path}.weight", data=(0.02,), shape=(64, 64))
    bias = program.leaf(f"{path}.bias", data=(0.0,), shape=(64,))
    expression = f"self.{path.rsplit('.', 1)[-1]}(x)"
    y = program.op(op, [(bias, 0.1), (x, 0.9), (weight, 0.1)], (0.1,), expression)
    program.exit()
    return y


def broken() -> Report:
    """A logarithm of zero: finite until Log, NaN and infinity below."""
    program = Program("nan.py")
    w = program.leaf("w", data=(1, 0, 2), shape=(3,))
    s = program.leaf("scale", data=(0, 0, 0), shape=(3,))
    program.line = 5
    p = program.op("MulBackward0", [(w, s.data), (s, w.data)], (0, 0, 0), "w*scale", "p")
    program.line = 6
    q = program.op("LogBackward0", [(p, (1.0, math.inf, math.nan))], (0, 0, 0), "torch.log(p)")
    total = program.op("SumBackward0", [(q, 1)], (0,), "torch.log(p).sum()", "loss")
    report = program.report((total, (1.0,)), labels=["loss"])
    return msgspec.structs.replace(report, notes=("The program ended with status 1.",))


def several_outputs() -> Report:
    """``unbind``: a node with three outputs, one used twice, one not at all."""
    program = Program("unbind.py")
    x = program.leaf("x", data=(1, 2), shape=(2,))
    first = program.op("UnbindBackward0", [(x, 1)], (1, 2), "x.unbind()")
    second = program.another_output(first)
    program.another_output(first)
    square = program.op("MulBackward0", [(second, (1, 2)), (second, (1, 2))], (1, 4), "b*b")
    y = program.op("AddBackward0", [(first, 1), (square, 1)], (2, 6), "a + b*b", "y")
    return program.report((y, (1.0, 1.0)), labels=["y"])


def shared_operation() -> Report:
    """An operation without a name that two others use."""
    program = Program("shared.py")
    x, w = program.leaf("x", data=(2,)), program.leaf("self.w", "w", data=(3,))
    product = program.op("MulBackward0", [(x, 3), (w, 2)], (6,))
    left = program.op("SinBackward0", [(product, 0.5)], (0,), "sin(x*w)")
    right = program.op("CosBackward0", [(product, 0.25)], (0,), "cos(x*w)")
    y = program.op("SubBackward0", [(left, 1), (right, -1)], (0,), "sin(x*w) - cos(x*w)", "y")
    return program.report((y, (1.0,)), labels=["y"])


def two_roots() -> Report:
    """Two losses over one weight; one loss is on the other's path."""
    program = Program("roots.py")
    w = program.leaf("w", data=(2,))
    hidden = program.op("MulBackward0", [(w, 3)], (6,), "w*3", "first")
    second = program.op("ExpBackward0", [(hidden, 2)], (403,), "first.exp()", "second")
    return program.report((hidden, (1.0,)), (second, (0.5,)), labels=["first", "second"])


def states() -> Report:
    """A gradient of every state on the edges into leaves."""
    program = Program("states.py")
    names = ("reached", "zero", "none", "skipped", "nan")
    leaves = [program.leaf(name, data=(1.0,), shape=(64, 64)) for name in names]
    factors = (1.0, 0.0, 1.0, 1.0, math.nan)
    stack = program.op(
        "Mix", list(zip(leaves, factors, strict=True)), (1.0,), "mix(...)", kind="custom"
    )
    y = program.op("SumBackward0", [(stack, 1.0)], (5.0,), "mix(...).sum()", "y")
    report = program.report((y, (1.0,)), labels=["y"])
    return _silenced(report, {"none": GradientInfo("none"), "skipped": GradientInfo("not reached")})


def _silenced(report: Report, states: dict[str, GradientInfo]) -> Report:
    """The report with other gradients at some leaves."""
    (backward,) = report.passes
    nodes = {
        leaf.node: states[leaf.names[0]] for leaf in report.graph.leaves if leaf.names[0] in states
    }
    table = [*backward.gradients, *states.values()]
    entry = {node: table.index(info) for node, info in nodes.items()}
    edges = [
        entry.get(e.target, old) for e, old in zip(report.graph.edges, backward.edges, strict=True)
    ]
    upstream = [
        (entry[node],) if node in entry else row for node, row in enumerate(backward.upstream)
    ]
    changed = msgspec.structs.replace(
        backward,
        gradients=tuple(table),
        edges=tuple(edges),
        upstream=tuple(upstream),
        accumulations=tuple(Accumulation(upstream[leaf.node][0]) for leaf in report.graph.leaves),
    )
    return msgspec.structs.replace(report, passes=(changed,))


def hostile(name: str = HOSTILE) -> Report:
    """The same name for everything that has one."""
    program = Program(name + ".py")
    leaf = program.leaf(name, data=(1, 2), shape=(2,))
    x = program.op("MulBackward0", [(leaf, 2)], (2, 4), name, name)
    program.enter(name, name)
    for _ in range(2):
        x = program.op(name, [(x, 1)], (2, 4), name, name, kind="custom")
    program.exit()
    return program.report((x, (1.0, 2.0)), labels=[name], notes=[name])


def saved() -> Report:
    """A node with tensors kept for backward, one of them complex."""
    program = Program("saved.py")
    z = program.leaf("z", data=(1, 2), shape=(2,))
    y = program.op("MulBackward0", [(z, 2)], (2, 4), "z*w", "y")
    tensor = TensorInfo((2,), "complex64", values=(1.0, 2.0, 3.5, -4.0))
    program.steps[-1].saved = (
        ("self", TensorInfo((2,), "float32", values=(1.0, 2.0))),
        ("other", tensor),
    )
    return program.report((y, (1.0, 1.0)), labels=["y"])


def unnamed_leaf() -> Report:
    """A leaf the program has no name for."""
    program = Program("unnamed.py")
    y = program.op("SumBackward0", [(program.leaf(data=(1, 2), shape=(2,)), 1)], (3,), "f(x)", "y")
    return program.report((y, (1.0, 1.0)))


def diagnosed() -> Report:
    """:func:`broken` with findings of every severity, two of them about one node, one without a
    place."""
    report = broken()
    log = next(node for node in report.graph.nodes if node.op == "LogBackward0")
    about = NodeReference(log.id, log.op)
    cause = Finding(
        "GS102",
        "nonfinite-backward",
        "error",
        "Backward of `torch.log(p)` turns a finite gradient into NaN or infinity.",
        location=Location("nan.py", 6, "torch.log(p)"),
        node=about,
        subject="loss",
        evidence=("received 1.73 (2-norm), sent 1 NaN and 1 infinite elements", "p is 0"),
        why="The derivative of the logarithm is infinite at 0.",
        remedy="Clamp its operand from below: `torch.log(p.clamp(min=1e-8))`.",
        step=1,
    )
    unused = Finding(
        "GS301",
        "unused-parameter",
        "warning",
        "naïve_größe was never used.",
        subject="naïve_größe",
        remedy="Call it in forward, or delete it.",
    )
    remark = Finding("GS304", "no-grad", "information", "It may be meant.", node=about)
    return msgspec.structs.replace(report, findings=(cause, unused, remark))


def diagnosed_module() -> Report:
    """A transformer with a warning about a node deep inside its third block."""
    report = transformer(4)
    gelus = [node for node in report.graph.nodes if node.op == "GeluBackward0"]
    finding = Finding(
        "GS202",
        "exploding",
        "warning",
        "The gradient grows from block to block.",
        location=Location("gpt.py", 24, "self.act(h)"),
        node=NodeReference(gelus[2].id, gelus[2].op),
        subject="gpt.h.2.mlp",
    )
    return msgspec.structs.replace(report, findings=(finding,))


CASES: dict[str, Callable[[], Report]] = {
    "small": small,
    "traced": lambda: small(backward=False),
    "scalars": scalars,
    "doublings": doublings,
    "transformer": transformer,
    "broken": broken,
    "diagnosed": diagnosed,
    "diagnosed-module": diagnosed_module,
    "several-outputs": several_outputs,
    "shared-operation": shared_operation,
    "two-roots": two_roots,
    "states": states,
    "hostile": hostile,
    "saved": saved,
    "unnamed-leaf": unnamed_leaf,
}
"""The reports with golden files, by the names of those files."""


def decaying(rounds: int = 500, last: float = 1.0) -> Report:
    """A recurrent network unrolled by hand whose gradient shrinks by 0.9 a step; ``last`` is the
    derivative of its first step, which backward meets last."""
    program = Program("rnn.py")
    h, w = program.leaf("h", data=(1.0,), shape=(4,)), program.leaf("w", data=(1.0,), shape=(4,))
    for step in range(rounds):
        program.line = 7
        inner = program.op("MulBackward0", [(h, 1), (w, 1)], (1,), "h * w")
        factor = 0.9 if step else last
        h = program.op("TanhBackward0", [(inner, factor)], (1,), "torch.tanh(h * w)", "h")
    program.line = 9
    loss = program.op("SumBackward0", [(h, 1)], (1,), "h.sum()", "loss")
    return program.report((loss, (1.0,)), labels=["loss"])


def functions() -> Report:
    """Code without modules: functions that are called again and again, some of them in a loop."""
    program = Program("functional.py")
    x = program.leaf("x", data=(1.0,))
    for block in range(4):
        w = program.leaf(f"W[{block}]", data=(1.0,))
        for function, ops in (("norm", 4), ("attend", 5), ("mlp", 3)):
            program.function = function
            for number in range(ops):
                program.line = 10 * ops + number
                inputs = [(x, 1.5), (w, 0.5)] if number == 0 else [(x, 0.5)]
                name = f"{function.title()}{number}"
                x = program.op(f"{name}Backward0", inputs, (1,), f"{name.lower()}(x)")
        program.function, program.line = "", 90 + block
        x = program.op("AddBackward0", [(x, 1)], (1,), "x + y", "x")
    return program.report((x, (1.0,)), labels=["x"])


def blocks_of_functions(layers: int = 24) -> Report:
    """Equal modules that call a function, as attention does in some libraries."""
    program = Program("model.py")
    x = program.leaf("x")
    for layer in range(layers):
        program.enter(f"h.{layer}", "Block")
        for number in range(16):
            program.function = "attention" if 4 <= number < 10 else "Block.forward"
            program.line = number
            x = program.op(f"Op{number}Backward0", [(x, 1.1)], (1,), f"op{number}(x)")
        program.exit()
    return program.report((x, (1.0,)))


def unet(levels: int = 3, *, is_timed: bool = False) -> Report:
    """Down and up again: at each level up the first operand is what a level down has left; where it
    ``is_timed``, all of it takes one more value."""
    program = Program("unet.py")
    x = program.leaf("x")
    skips = []
    time = _layer(program, "time", "Linear", "AddmmBackward0", program.leaf("t")) if is_timed else x
    for level in range(levels):
        x = _layer(program, f"down{level}", "Conv2d", "ConvolutionBackward0", x)
        if is_timed:
            x = program.op("AddBackward0", [(x, 1), (time, 0.3)], (1.0,), "x + time", "x")
        skips.append(x)
        x = program.op("MaxPool2DBackward0", [(x, 0.9)], (1.0,), "max_pool2d(x)", "x")
    for level in range(levels):
        program.line = 20
        program.enter(f"up.{level}", "Up")
        x = _layer(program, f"up.{level}.up", "ConvTranspose2d", "ConvolutionBackward0", x)
        both = [(skips.pop(), 0.5), (x, 0.6), *([(time, 0.4)] if is_timed else [])]
        x = program.op("CatBackward0", both, (1.0,), "cat([skip, x])", "x")
        x = _layer(program, f"up.{level}.join", "Conv2d", "ConvolutionBackward0", x)
        program.exit()
    return program.report((x, (1.0,)))


def towers(path: str = "D.") -> Report:
    """A module that is called twice, once below more, and both calls use its four weights."""
    program = Program("towers.py")
    names = ("0.weight", "0.bias", "2.weight", "2.bias")
    first, second, third, fourth = (program.leaf(f"{path}{name}") for name in names)
    judged = []
    for call in ("D(real)", "D(fake)"):
        program.enter("D", "Discriminator")
        x = program.op("AddmmBackward0", [(first, 0.1), (second, 0.2)], (1.0,), call)
        x = program.op("AddmmBackward0", [(third, 0.3), (x, 0.5), (fourth, 0.4)], (1.0,), call)
        program.exit()
        if call == "D(real)":
            x = program.op("NegBackward0", [(x, -1)], (1.0,), "-D(real)")
        judged.append((program.op("SoftplusBackward0", [(x, 0.9)], (1.0,), call), 1.0))
    return program.report((program.op("AddBackward0", judged, (1.0,), "loss"), (1.0,)))


def detached() -> Report:
    """The towers, of which one takes what history was cut of."""
    report = towers()
    graph, cut = report.graph, Origin("towers.py", 3, "fake.detach()")
    node = max(
        node.id
        for node in graph.nodes
        if (origin := graph.origin_of(node)) and origin.expression == "D(fake)"
    )
    walls = (Wall(node, "detach", len(graph.origins)),)
    graph = msgspec.structs.replace(graph, origins=(*graph.origins, cut), walls=walls)
    return msgspec.structs.replace(report, graph=graph)


def recurrent(rounds: int = 20) -> Report:
    """``h = tanh(h @ w + x @ u)`` in a loop."""
    program = Program("rnn.py")
    h, w, u = (program.leaf(name) for name in "hwu")
    for _ in range(rounds):
        left = program.op("MmBackward0", [(h, 0.9), (w, 0.1)], (1.0,), "h @ w")
        right = program.op("MmBackward0", [(u, 0.1)], (1.0,), "x @ u")
        both = program.op("AddBackward0", [(left, 1), (right, 1)], (1.0,), "h @ w + x @ u")
        h = program.op("TanhBackward0", [(both, 0.9)], (1.0,), "torch.tanh(h @ w + x @ u)", "h")
    return program.report((h, (1.0,)))
