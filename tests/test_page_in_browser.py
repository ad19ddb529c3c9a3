"""The interactive page in Chromium and Firefox: ``web/test/page.test.mjs`` on pages made here.

Needs Node.js, the packages of ``web/`` (``make page``) and the browser.  Where one is missing the
test is skipped and says which; where CI is set that is a failure.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec
import pytest

from gradscope.api.difference import diff
from gradscope.model import storage
from gradscope.model.observations import Finding, Location, NodeReference, Severity
from gradscope.model.ranks import OneRank, RankPasses, Ranks
from gradscope.model.report import Histogram, Node, Report
from gradscope.model.studies import CallCheck, Checks, KeptStorage, Memory, Verdict
from gradscope.render import render, save
from tests.conftest import ROOT
from tests.fuzz.process import ran
from tests.program import Program
from tests.ranks.built import larger, on_ranks
from tests.reports import (
    broken,
    chain,
    decaying,
    detached,
    layers,
    recurrent,
    small,
    states,
    towers,
    transformer,
    unet,
)

WEB = ROOT / "web"
HOSTILE = "</script><img src=x onerror=\"window.acted='img'\"><script>window.acted=1</script>"


BROWSERS = {
    "chromium": ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"),
    "firefox": ("firefox", "firefox-esr"),
}
"""The names of their programs."""


def _program(browser: str) -> str | None:
    named = os.environ.get(browser.upper())
    return named or next(filter(None, map(shutil.which, BROWSERS[browser])), None)


def _missing(browser: str) -> str:
    """What this test needs and this machine has not; "" when all is there."""
    if shutil.which("node") is None:
        return "Node.js is not installed"
    if not (WEB / "node_modules" / "playwright-core").is_dir():
        return "playwright-core is not installed: run make page"
    if _program(browser):
        return ""
    return f"no {browser.title()}: install it, or name one in {browser.upper()}"


def hostile() -> Report:
    program = Program(f"{HOSTILE}.py")
    leaf = program.leaf(HOSTILE, data=(1.0, 2.0), shape=(2,))
    program.enter(HOSTILE, HOSTILE)
    inner = program.op("constructorBackward0", [(leaf, 1)], (1, 2), "x")
    y = program.op(HOSTILE, [(inner, 2)], (2, 4), HOSTILE, HOSTILE, kind="custom")
    program.exit()
    return program.report((y, (1.0, 2.0)), labels=[HOSTILE], notes=[HOSTILE])


def with_findings() -> Report:
    """Two findings: the milder one comes first in backward order."""
    report = transformer(3)
    nodes = [node for node in report.graph.nodes if node.op == "GeluBackward0"]
    found = (_finding("GS303", "warning", nodes[0]), _finding("GS102", "error", nodes[3]))
    return msgspec.structs.replace(report, findings=found)


def _finding(rule: str, severity: Severity, node: Node) -> Finding:
    return Finding(
        rule=rule,
        name="a-name",
        severity=severity,
        message=f"{rule} was found",
        location=Location("gpt.py", 24),
        node=NodeReference(node.id, node.op),
    )


def several_passes() -> Report:
    """The same graph after two backward calls, the second with another gradient."""
    report = small()
    (first,) = report.passes
    passes = (
        msgspec.structs.replace(first, number=1),
        msgspec.structs.replace(larger(first, 2.0), number=2),
    )
    return msgspec.structs.replace(report, passes=passes)


def opposed() -> Report:
    """``h - 0.9*h``: of what meets at h a share came through a skip, and most of it cancels."""
    program = Program("opposed.py")
    h = program.op("MulBackward0", [(program.leaf("x"), 2)], (1.0,), "2*x", "h")
    part = program.op("MulBackward0", [(h, -0.9)], (1.0,), "-0.9*h")
    whole = program.op("AddBackward0", [(h, 1), (part, 1)], (1.0,), "h - 0.9*h")
    return program.report((whole, (1.0,)))


def lost() -> Report:
    """A saturated sigmoid on the only way to all leaves."""
    program = Program("lost.py")
    two = (3.0, 4.0)
    a, b = (program.leaf(name, data=two, shape=(2,)) for name in "ab")
    added = program.op("AddBackward0", [(a, 1), (b, 1)], two, "a + b")
    judged = program.op("SigmoidBackward0", [(added, 1e-9)], two, "torch.sigmoid(a + b)")
    return program.report((program.op("ExpBackward0", [(judged, 1)], two), (0.6, 0.8)))


def steps(*numbers: int) -> Report:
    """The same layers in calls of these numbers, each with gradients ten times as large; numbers
    of 0 are the sides of a comparison."""
    report = transformer(4)
    (first,) = report.passes
    passes = tuple(
        msgspec.structs.replace(larger(first, 10.0**at), number=number)
        for at, number in enumerate(numbers)
    )
    return msgspec.structs.replace(report, passes=passes)


def several_graphs() -> Report:
    """The calls of two losses: the first and the third walk one graph, the second another."""
    report, other = several_passes(), broken()
    first, second = report.passes
    passes = (first, msgspec.structs.replace(second, number=3))
    (between,) = other.passes
    other = msgspec.structs.replace(other, passes=(msgspec.structs.replace(between, number=2),))
    return msgspec.structs.replace(report, passes=passes, others=(other,))


def with_answers() -> Report:
    """All that boxes may show: bytes, verdicts, findings, gradients beside weights."""
    return _with_answers(with_findings())


def kept() -> Report:
    """The same of a line that made several nodes."""
    return _with_answers(small())


def _with_answers(report: Report) -> Report:
    graph = report.graph
    ops = [node.id for node in graph.nodes if node.kind == "op"]
    kept = tuple(
        KeptStorage(4096 * at, 4096 * at, (1024, at), "float32", "cpu", "activation", ((n, "x"),))
        for at, n in enumerate(ops, 1)
    )
    verdicts: tuple[Verdict, ...] = ("wrong", "kink", "right", "right", "meant")
    calls = tuple(CallCheck((n,), "call", word) for n, word in zip(ops, verdicts, strict=False))
    leaves = tuple(msgspec.structs.replace(leaf, norm=2.0) for leaf in graph.leaves)
    return msgspec.structs.replace(
        report,
        graph=msgspec.structs.replace(graph, leaves=leaves),
        memory=Memory(kept),
        checks=Checks(calls),
    )


def with_histograms() -> Report:
    report = small()
    (backward,) = report.passes
    bars = Histogram(1, -8, (1, 0, 1))
    table = tuple(
        msgspec.structs.replace(info, histogram=bars if info.state == "finite" else None)
        for info in backward.gradients
    )
    changed = msgspec.structs.replace(backward, gradients=table)
    return msgspec.structs.replace(report, passes=(changed,))


def traced() -> Report:
    return small(backward=False)


def differentiated() -> Report:
    """As if its first operation had been made by a backward pass."""
    report = small()
    first, *others = report.graph.nodes
    nodes = (msgspec.structs.replace(first, backward_made=True), *others)
    return msgspec.structs.replace(report, graph=msgspec.structs.replace(report.graph, nodes=nodes))


def long() -> Report:
    """Names of 5,000 characters."""
    program = Program("long.py")
    leaf = program.leaf("w" * 5000, data=(1.0, 2.0), shape=(2,))
    y = program.op("MulBackward0", [(leaf, 2)], (2, 4), "y" * 5000)
    return program.report((y, (1.0, 2.0)), labels=["z" * 5000])


def sized() -> Report:
    """So many leaves that it is said which gradient is the largest, on two ranks."""
    report = transformer()
    each = tuple(OneRank(rank, calls=1, nodes=len(report.graph.nodes)) for rank in range(2))
    other = RankPasses(1, (larger(report.passes[0], 3.0),))
    return msgspec.structs.replace(report, ranks=Ranks(0, 2, each, passes=(other,)))


def large() -> Report:
    """More lines than a browser takes as arguments of one call."""
    return chain(150_000, distinct=True)


def spoilt() -> Report:
    """Enough nodes for a river: one makes infinity of a finite gradient, a leaf gets only zeros."""
    program = Program("spoilt.py")
    x = program.leaf("x", data=(1.0,), shape=(4,))
    for layer in range(16):
        weight = program.leaf(f"w{layer}", data=(1.0,), shape=(4,))
        program.line = 10 + layer
        factor = float("inf") if layer == 3 else 0.9
        inputs = [(x, factor), (weight, 0.5 * (layer != 12))]
        x = program.op("MulBackward0", inputs, (1,), f"x * w{layer}", "x")
    return program.report((x, (1.0,)), labels=["loss"])


# At and past the numbers of rounds where a repeat is divided; other formats are tried with more.
LENGTHS = (64, 120, 121, 129, 193, 1_000)

REPEATS: dict[str, Callable[[], Report]] = {
    **{f"loop-{rounds}": partial(decaying, rounds) for rounds in LENGTHS},
    **{f"layers-{rounds}": partial(layers, rounds) for rounds in (17, 121, 1_000)},
}


def sequential() -> Report:
    """Modules in a Sequential, which have nothing but numbers for names."""
    program = Program()
    x = program.leaf("x")
    for number in range(3):
        program.enter(f"experts.{number}", "Sequential")
        for inner, op in ((0, "Tanh"), (2, "Exp")):
            program.enter(f"experts.{number}.{inner}", "Layer")
            for place in range(8):
                x = program.op(f"{op}{place}Backward0", [(x, 1.0)], (1.0,), f"{op}({place})")
            program.exit()
        program.exit()
    return program.report((x, (1.0,)))


def wide() -> Report:
    """Equal modules that are most of the program, each with many operations beside each other."""
    program = Program("wide.py")
    x = program.leaf("x", data=(1.0,), shape=(4,))
    for number in range(3):
        program.enter(f"experts.{number}", "Expert")
        ways = [
            program.op(f"{op}Backward0", [(x, 1.0)], (1.0,), f"torch.{op.lower()}({'x' * 30})")
            for op in ("Sin", "Cos", "Tanh", "Exp", "Log", "Sqrt", "Erf", "Neg", "Abs", "Tan")
        ]
        x = program.op("StackBackward0", [(way, 1.0) for way in ways], (1.0,), "torch.stack(ways)")
        program.exit()
    return program.report((x, (1.0,)))


def routed() -> Report:
    """Equal blocks that are next to nothing but experts, in more than can be seen at once."""
    program = Program("routed.py")
    x = program.leaf("x", data=(1.0,), shape=(4,))
    for layer in range(3):
        skip = x
        path = f"layers.{layer}.moe"
        program.enter(f"layers.{layer}", "Block")
        program.enter(path, "MoE")
        routes = program.op("SoftmaxBackward0", [(x, 1.0)], (1.0,), "self.gate(x).softmax(-1)")
        for expert in range(4):
            program.enter(f"{path}.experts.{expert}", "Expert")
            for op in ("Gelu", "Mm", "Tanh", "Exp"):
                x = program.op(f"{op}Backward0", [(x, 0.9), (routes, 0.1)], (1.0,), f"{op}(x)")
            program.exit()
        program.exit()
        x = program.op("AddBackward0", [(skip, 1), (x, 1)], (1.0,), "x + self.moe(x)", "x")
        program.exit()
    for op in ("Sin", "Cos", "Log", "Sqrt"):
        x = program.op(f"{op}Backward0", [(x, 1.0)], (1.0,), f"torch.{op.lower()}(x)", "x")
    report = program.report((x, (1.0,)))
    absent = tuple(f"layers.{layer}.moe.experts.4" for layer in range(3))
    graph = msgspec.structs.replace(report.graph, absent=absent)
    return msgspec.structs.replace(report, graph=graph)


def distant(factor: float) -> Report:
    """A sum, of whose terms one has a gradient that is so many times as large."""
    program = Program("distant.py")
    a, b = (program.leaf(name, data=(1.0, 2.0), shape=(2,)) for name in "ab")
    scaled = program.op("MulBackward0", [(a, factor)], (1.0, 2.0), "scale * a")
    whole = program.op("AddBackward0", [(scaled, 1), (b, 1)], (2.0, 4.0), "scale * a + b")
    return program.report((whole, (3.0, 4.0)))


def marked() -> Report:
    """Blocks of which the last in backward order has a norm in which the gradient grows, and a
    module without a name that is called twice."""
    program = Program("marked.py")
    x = program.leaf("x", data=(1.0,), shape=(4,))
    for number in range(12):
        path = f"blocks.{number}"
        program.enter(path, "Block")
        program.enter(f"{path}.norm", "Norm")
        program.line = 10
        scale = program.leaf(f"{path}.norm.scale", data=(1.0,), shape=(4,))
        bent = program.op("MulBackward0", [(x, 0.9), (scale, 0.1)], (1.0,), "self.scale * x")
        program.line = 11
        bent = program.op("RsqrtBackward0", [(bent, 0.9 if number else 40)], (1.0,), "bent.rsqrt()")
        program.exit()
        for line, op in enumerate(("Sin", "Cos", "Tanh", "Exp"), 20):
            program.line = line
            bent = program.op(f"{op}Backward0", [(bent, 0.9)], (1.0,), f"torch.{op.lower()}(bent)")
        x = program.op("AddBackward0", [(x, 1), (bent, 1)], (1.0,), "x + bent", "x")
        program.exit()
    judged = []
    for line, name in enumerate(("real", "fake"), 30):
        program.line = line
        origin = program._origin(f"judge({name})", "")
        program.enter("", "Sequential")
        program.calls[-1] = msgspec.structs.replace(program.calls[-1], origin=origin)
        made = x
        for op in ("Sigmoid", "Sqrt", "Log"):
            made = program.op(f"{op}Backward0", [(made, 0.5)], (1.0,), f"torch.{op.lower()}(x)")
        judged.append(made)
        program.exit()
    loss = program.op("SubBackward0", [(judged[0], 1), (judged[1], -0.5)], (1.0,), "real - fake")
    return program.report((loss, (1.0,)), labels=["loss"])


def elsewhere() -> Report:
    """A program that was called by the whole of its path."""
    report = small()
    meta = msgspec.structs.replace(report.meta, target="/home/ada/train.py")
    return msgspec.structs.replace(report, meta=meta)


REPORTS: dict[str, Callable[[], Report]] = {
    "small": small,
    "traced": traced,
    "transformer": transformer,
    "broken": broken,
    "states": states,
    "spoilt": spoilt,
    "hostile": hostile,
    "findings": with_findings,
    "passes": several_passes,
    "opposed": opposed,
    "lost": lost,
    "marked": marked,
    "steps": partial(steps, 1, 2, 3),
    "pair": partial(steps, 0, 0),
    "graphs": several_graphs,
    "answers": with_answers,
    "kept": kept,
    "ranks": on_ranks,
    "sized": sized,
    "histograms": with_histograms,
    "long": long,
    "large": large,
    "sequential": sequential,
    "unet": unet,
    "timed": partial(unet, is_timed=True),
    "towers": towers,
    "detached": detached,
    "columns": partial(chain, 24, distinct=True),
    "wide": wide,
    "routed": routed,
    "recurrent": recurrent,
    "elsewhere": elsewhere,
    "differentiated": differentiated,
}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that they are in."""
    folder = tmp_path_factory.mktemp("pages")
    for name, make in {**REPORTS, **REPEATS}.items():
        report = make()
        save(report, str(folder / f"{name}.html"), "html")
        if name in REPORTS and name != "large":
            (folder / f"{name}.json").write_bytes(storage.encode(report))
    save(small(), str(folder / "small.dot"), "dot")
    for name, times in (("a", 40), ("b", 39)):
        save(chain(times, distinct=True), str(folder / f"{name}.json"), "json")
    for name, factor in (("far", 2.0), ("near", 1.0)):
        (folder / f"{name}.json").write_bytes(storage.encode(distant(factor)))
    diff(folder / "far.json", folder / "near.json").save(folder / "distant.html")
    # Of one more operation at the far end.
    diff(folder / "a.json", folder / "b.json").save(folder / "compared.html")
    _write_broken(folder)
    return folder


@pytest.mark.long
@pytest.mark.parametrize("browser", BROWSERS)
def test_the_page_in_a_browser(browser: str, request: pytest.FixtureRequest) -> None:
    missing = _missing(browser)
    if missing and os.environ.get("CI"):
        pytest.fail(missing)
    if missing:
        pytest.skip(missing)
    folder = str(request.getfixturevalue("pages"))
    named = {"PAGES": folder, "BROWSER": browser, "PROGRAM": _program(browser) or ""}
    done = ran(["node", "--test", "test/page.test.mjs"], WEB, os.environ | named, limit=900)
    assert done.returncode == 0, done.stdout + done.stderr


def _write_broken(folder: Path) -> None:
    """The small page cut off in each of its parts, and with one byte of its data changed."""
    whole = str(render(small(), "html"))
    data = whole.index('id="report">') + 200
    marks = {
        "style": whole.index("<style>") + 500,
        "data": data,
        "script": whole.rindex("<script>") + 50_000,
        "end": whole.rindex("</script>") + 5,
    }
    for name, end in marks.items():
        (folder / f"cut-{name}.html").write_text(whole[:end], "utf-8")
    (folder / "cut.json").write_text(json.dumps([f"cut-{name}" for name in marks]))
    other = "A" if whole[data] != "A" else "B"
    (folder / "damaged.html").write_text(whole[:data] + other + whole[data + 1 :], "utf-8")
