"""A program of a user who uses all of the interface: read by type checkers, and run by a test."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

import gradscope


def make() -> tuple[nn.Module, torch.Tensor]:
    """A network and its loss."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    return net, net(torch.randn(6, 4)).pow(2).mean()


def look(folder: Path) -> list[str]:
    """At a graph, in every way."""
    net, loss = make()
    report: gradscope.Report = gradscope.backward(loss, gradient=2.0, values=True, histograms=True)
    assert net.training
    report.show("table", sort="gradient", top=3)
    report.show(format="code", depth=2, all=False, width=90, color=False)
    report.show(focus="*weight*", values=True, unicode=True)
    for name in ("graph.json", "graph.html", "leaves.csv", "graph.txt"):
        report.save(folder / name)
    report.save(str(folder / "picture"), format="dot")
    leaf: gradscope.LeafGradient = report.leaf("0.weight")
    norm = leaf.gradient.norm if leaf.gradient is not None else None
    largest: list[gradscope.LeafGradient] = report.top(2)
    again: gradscope.Report = gradscope.load(folder / "graph.json", max_size=None)
    traced = gradscope.trace(loss, values=False, saved=True)
    difference: gradscope.Difference = gradscope.diff(report, folder / "graph.json", rtol=1e-4)
    difference.show(top=5)
    difference.save(folder / "difference.html")
    assert difference.verdict == "identical", difference.leaves
    told = [repr(report), repr(again), repr(traced), repr(leaf), repr(difference)]
    return [*told, *map(repr, largest), str(norm is None)]


def ask() -> list[str]:
    """Further questions."""
    net, loss = make()
    explained: gradscope.Report = gradscope.explain(loss, "0.weight", all=True)
    held: gradscope.Report = gradscope.memory(loss)
    held.show(by="line", top=2)
    mapped: gradscope.Report = gradscope.depends(net(torch.ones(2, 4)), "0.bias", axis=(1, 0))
    report: gradscope.Report = gradscope.doctor(loss, ignore=["GS205"])
    findings: tuple[gradscope.Finding, ...] = report.findings
    with gradscope.record(check=True) as run:
        again = net(torch.ones(2, 4)).sum()
        checked: gradscope.Report = gradscope.check(again)
    checked.show()
    assert checked.checks is not None and not checked.checks.is_wrong
    assert explained.explanation is not None and held.memory is not None
    assert mapped.dependence is not None and mapped.dependence.of.axis == 1
    looks: list[Callable[[torch.Tensor], gradscope.Report]] = [
        *(run.trace, run.backward, run.explain, run.check, run.memory, run.doctor)
    ]
    return [*map(str, findings), *(repr(one(again)) for one in looks)]


def train() -> list[str]:
    """Under the eyes of the doctor."""
    net = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    with gradscope.record(doctor=True, thorough=True, ignore=("GS503",)) as run:
        for _ in range(3):
            loss = net(torch.ones(6, 4)).pow(2).mean()
            optimizer.zero_grad()
            torch.autograd.backward(loss)
            optimizer.step()
    found: gradscope.Run = run
    for finding in found.findings:
        where = finding.location.line if finding.location else 0
        print(finding.rule, finding.severity, finding.message, where, finding.remedy)
    return [repr(found.report()), repr(found)]


def watch(folder: Path) -> list[str]:
    """A training, for as long as it runs."""
    net = nn.Sequential(nn.Linear(4, 2))
    rows: list[gradscope.Row] = []
    with gradscope.watch(net, every=1, to=rows.append) as block:
        net(torch.ones(6, 4)).sum().backward()
    with gradscope.watch(net, to=folder / "run.jsonl"):
        net(torch.ones(6, 4)).sum().backward()
    problems: list[str] = block.problems
    parts: dict[str, gradscope.ModuleRow] = dict(rows[0].modules)
    norm: float | None = parts["0"].norm
    return [*problems, f"{norm} {rows[0].step} {rows[0].nonfinite}"]


def mistake() -> str:
    """What a mistake is told as."""
    try:
        gradscope.backward(torch.ones(2))
    except gradscope.GradscopeError as error:
        return error.hint
    return ""
