"""A training that is watched by the terms of its loss: torch's own gradients of each term are the
oracle, and the training stays the same."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

import pytest
import torch
from torch import nn

import gradscope
from gradscope import Row
from gradscope.model.rows import TermRow, line_of, row_of
from tests.looking import Session


class Autoencoder(nn.Module):
    """Two layers, of which a loss of two terms moves one twice."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.enc = nn.Linear(6, 3)
        self.dec = nn.Linear(3, 6)

    def terms(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        """The terms of the loss, by name."""
        z = self.enc(x)
        return {"mse": (self.dec(z) - x).square().mean(), "prior": 3 * z.square().mean()}


def oracle(model: Autoencoder, terms: Mapping[str, torch.Tensor]) -> dict[str, TermRow]:
    """What each term brings, by backward calls of its own."""
    every = dict(model.named_parameters())
    flat, parts = {}, {}
    for name, term in terms.items():
        found = torch.autograd.grad(term, [*every.values()], retain_graph=True, allow_unused=True)
        got = dict(zip(every, found, strict=True))
        filled = [torch.zeros_like(one) if got[k] is None else got[k] for k, one in every.items()]
        flat[name] = torch.cat([one.double().flatten() for one in filled])
        parts[name] = {
            part: math.hypot(*(float(got[k].double().norm()) for k in got if k[:3] == part))
            for part in ("enc", "dec")
            if any(got[k] is not None for k in got if k[:3] == part)
        }
    total = sum(float(one.norm()) for one in flat.values())
    rows = {}
    for name, own in flat.items():
        others = torch.stack([one for key, one in flat.items() if key != name]).sum(0)
        cosine = float(own @ others / (own.norm() * others.norm()))
        rows[name] = TermRow(float(own.norm()), float(own.norm()) / total, cosine, parts[name])
    return rows


def check(found: Mapping[str, TermRow], known: Mapping[str, TermRow]) -> None:
    assert list(found) == list(known)
    for name, row in found.items():
        assert row.norm == pytest.approx(known[name].norm, rel=1e-5)
        assert row.share == pytest.approx(known[name].share, rel=1e-5)
        assert row.cosine == pytest.approx(known[name].cosine, rel=1e-4, abs=1e-6)
        assert dict(row.modules) == pytest.approx(known[name].modules, rel=1e-5)


def trained(
    by: bool, accumulated: int = 1
) -> tuple[Autoencoder, list[Row], list[dict[str, TermRow]]]:
    """Three steps, their rows, and what torch says of their terms."""
    model, rows, known = Autoencoder(), list[Row](), list[dict[str, TermRow]]()
    optimizer = torch.optim.Adam(model.parameters())
    torch.manual_seed(1)
    with gradscope.watch(model, every=1, to=rows.append, by="term" if by else None):
        for _ in range(3):
            optimizer.zero_grad()
            for _ in range(accumulated):
                terms = model.terms(torch.randn(4, 6))
                last = oracle(model, terms)
                mse, prior = terms["mse"], terms["prior"]
                loss = mse + prior
                loss.backward()  # type: ignore[no-untyped-call]
            known.append(last)
            optimizer.step()
    return model, rows, known


@pytest.mark.parametrize("accumulated", [1, 3])
def test_each_row_has_what_each_term_brings(accumulated: int) -> None:
    _, rows, known = trained(by=True, accumulated=accumulated)
    assert len(rows) == len(known) == 3
    for row, one in zip(rows, known, strict=True):
        check(row.terms, one)
        assert row_of(line_of(row)) == row


def test_the_training_is_what_it_is_without() -> None:
    (one, plain, _), random = trained(by=False), torch.get_rng_state()
    other, rows, _ = trained(by=True)
    assert torch.equal(random, torch.get_rng_state())
    for mine, theirs in zip(one.parameters(), other.parameters(), strict=True):
        assert torch.equal(mine, theirs)
        assert mine._version == theirs._version
    assert [row.norm for row in plain] == [row.norm for row in rows]
    assert not any(row.terms for row in plain)


def test_a_scaler_is_divided_out() -> None:
    model, rows = Autoencoder(), list[Row]()
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with gradscope.watch(model, every=1, to=rows.append, by="term"):
        terms = model.terms(torch.ones(4, 6))
        known = oracle(model, terms)
        mse, prior = terms["mse"], terms["prior"]
        scaler.scale(mse + prior).backward()  # type: ignore[no-untyped-call]
        scaler.step(optimizer)
        scaler.update()
    check(rows[0].terms, known)


def test_hooks_of_the_program_run_once() -> None:
    model, rows = Autoencoder(), list[Row]()
    calls: list[torch.Tensor] = []
    model.enc.weight.register_hook(calls.append)  # type: ignore[no-untyped-call]
    with gradscope.watch(model, every=1, to=rows.append, by="term"):
        terms = model.terms(torch.ones(4, 6))
        sum(terms.values()).backward()  # type: ignore[union-attr]
    assert len(calls) == 1
    assert len(rows[0].terms) == 2


@pytest.mark.parametrize(
    ("loss", "told"),
    [
        ("m.enc(x).square().mean()", "is one term"),
        ("Twice.apply(m.enc(x)).mean() + m.dec.weight.norm()", "no piece of the gradient can be"),
    ],
)
def test_where_there_are_no_terms_it_is_told_once(
    loss: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(_, x):  # type: ignore[no-untyped-def]
            return 2 * x

        @staticmethod
        def backward(_, gradient):  # type: ignore[no-untyped-def]
            seen.append(gradient)
            return 2 * gradient

    seen: list[torch.Tensor] = []
    model, rows = Autoencoder(), list[Row]()
    with gradscope.watch(model, every=1, to=rows.append, by="term"):
        for _ in range(3):
            eval(loss, {"m": model, "x": torch.ones(4, 6), "Twice": Twice}).backward()
    assert len(seen) in (0, 3)
    assert [row.terms for row in rows] == [{}] * 3
    (line,) = capsys.readouterr().err.splitlines()
    assert told in line


PROGRAM = """\
import torch
from torch import nn
torch.manual_seed(0)
enc, dec = nn.Linear(6, 3), nn.Linear(3, 6)
optimizer = torch.optim.SGD([*enc.parameters(), *dec.parameters()], lr=1e-5)
for step in range(12):
    x = torch.randn(8, 6)
    z = enc(x)
    mse = (dec(z) - x).square().mean()
    prior = z.square().mean()
    loss = mse + 500 * prior
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_a_program_is_watched_by_term(session: Session) -> None:
    path, log = session.write(PROGRAM), session.folder / "run.jsonl"
    done = session.cli(
        "watch", str(path), "--by", "term", "--every", "3", "--width", "200", "-o", str(log)
    )
    assert done.status == 0
    assert "4 rows · steps 0 to 9 · 4 parts · 2 terms" in done.out
    assert re.search(r"term prior .* >99 % .* 0.38\n", done.out)
    assert "of 2 terms prior brings >99 %" in done.err
    rows = [row_of(line) for line in log.read_bytes().splitlines()[1:]]
    assert [list(row.terms) for row in rows] == [["mse", "prior"]] * 4
    shown = session.cli("show", str(log), "--width", "200")
    assert done.out.replace(str(log), log.name).startswith(shown.out.rstrip())
    page = session.folder / "run.html"
    assert session.cli("show", str(log), "-o", str(page)).status == 0
    assert re.search(r"term prior .*&gt;99 % .* 0.38", page.read_text("utf-8"))


def test_tensorboard_gets_the_terms() -> None:
    class Writer:
        def __init__(self) -> None:
            self.names: list[str] = []

        def add_scalar(self, name: str, value: float, step: int) -> None:
            assert math.isfinite(value)
            assert step == 0
            self.names.append(name)

    writer, model = Writer(), Autoencoder()
    with gradscope.watch(model, every=1, to=writer, by="term"):
        mse, prior = model.terms(torch.ones(4, 6)).values()
        (mse + prior).backward()  # type: ignore[no-untyped-call]
    assert {one for one in writer.names if "term" in one} == {
        f"gradscope/term_{what}/{name}" for what in ("norm", "share") for name in ("mse", "prior")
    }


def test_another_way_to_take_it_apart_is_refused(session: Session) -> None:
    assert session.told(PROGRAM, "watch --by sample").status == 2
    with pytest.raises(ValueError, match="by="):
        gradscope.watch(Autoencoder(), to=print, by="sample")  # type: ignore[arg-type]


@pytest.mark.parametrize("extra", [0, 3])
def test_many_terms_are_told_by_what_they_are_called(extra: int) -> None:
    """Of more than eight, those without a name are one; its name is the same in each step."""
    model, rows = Autoencoder(), list[Row]()
    with gradscope.watch(model, every=1, to=rows.append, by="term"):
        for step in range(3):
            mse = model.terms(torch.ones(4, 6))["mse"]
            penalty = sum(p.square().sum() for p in [*model.parameters()] * (3 + extra * step))
            known = oracle(model, {"mse": mse, "Sum": penalty})  # type: ignore[dict-item]
            loss = mse + penalty
            loss.backward()  # type: ignore[no-untyped-call]
    assert [list(row.terms) for row in rows] == [["mse", "Sum"]] * 3
    check(rows[-1].terms, known)
