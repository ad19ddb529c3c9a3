"""Cuts that take a part: a term of the loss, a part of a layer, every block of a loop; what is told
of them, at which line, and what is left alone."""

from __future__ import annotations

import pytest

from tests.looking import Session

HEAD = """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
net, other, last = nn.Linear(4, 12), nn.Linear(4, 4), nn.Linear(4, 1)
x, y = torch.randn(16, 4), torch.randn(16, 1)
mine = torch.optim.SGD([*net.parameters(), *last.parameters()], lr=0.01)
theirs = torch.optim.SGD(other.parameters(), lr=0.01)
both = torch.optim.SGD([*net.parameters(), *other.parameters(), *last.parameters()], lr=0.01)
def fit(loss, *optimizers):
    for optimizer in optimizers:
        optimizer.zero_grad()
    loss.backward()
    for optimizer in optimizers:
        optimizer.step()
for _ in range(4):
{body}
"""

TOLD: dict[str, list[tuple[str, str]]] = {
    # A term of the loss, and the step after it.
    "h = net(x)[:, :4]; fit(other(h.detach()).mean() + last(h).mean(), mine)": [
        ("GS310", "h.detach()")
    ],
    "h = net(x)[:, :4]; fit(other(h.detach()).mean() + last(h).mean(), mine, theirs)": [],
    "h = net(x)[:, :4]; fit(last(h).square().mean() - 0.1 * other(h.data).mean(), mine)": [
        ("GS310", "h.data")
    ],
    # The gradients of one step may be gathered by several calls.
    "h = net(x)[:, :4]; other(h.detach()).mean().backward(); fit(last(h).mean(), mine)": [],
    # What is not changed by the step may be cut.
    "h = other(x); fit(last(h.detach()).mean() + net(x).square().mean(), mine)": [],
    # A sample is to bring what it was drawn from the gradient of this very term.
    "d = torch.distributions.Normal(net(x)[:, :4], 1.0); "
    "fit(last(d.sample()).square().mean() + d.loc.square().mean(), mine)": [
        ("GS310", "d.sample()")
    ],
    "d = torch.distributions.Normal(net(x)[:, :4], 1.0); "
    "fit(last(d.rsample()).square().mean() + d.loc.square().mean(), mine)": [],
    "d = torch.distributions.Normal(net(x)[:, :4], 1.0); a = d.sample(); "
    "fit(last(net(x)[:, :4]).mean() - (d.log_prob(a).sum(1) * a.sum(1)).mean(), mine)": [],
    # A term that is a plain number.
    "h = net(x); fit(last(h[:, :4]).mean() + h.detach().square().mean(), mine)": [
        ("GS303", "h.detach()")
    ],
    "loss = last(net(x)[:, :4]).square().mean(); fit(loss + (2 - loss).detach(), mine)": [],
    "z = x.clone().requires_grad_(); "
    "g, = torch.autograd.grad(last(z).sum(), z, retain_graph=True); "
    "fit(last(net(z)[:, :4]).mean() + (g.norm(dim=1) - 1).square().mean(), mine)": [
        ("GS303", "torch.autograd.grad(last(z).sum(), z, retain_graph=True)")
    ],
    # Also before the mean over the samples.
    "h = net(x)[:, :4]; fit((last(h) - other(h).sum(1, keepdim=True).detach()).mean(), mine)": [
        ("GS303", "other(h).sum(1, keepdim=True).detach()")
    ],
    "h = net(x)[:, :4]; fit((last(h) + other(x)[:, :1].detach()).mean(), mine)": [],
    "with torch.no_grad(): p = last(net(x)[:, :4]); "
    "fit(((p - y).square() + (last(net(-x)[:, :4]) - y).square()).mean(), mine)": [
        ("GS303", "with torch.no_grad()")
    ],
    # What keeps or gives a value adds nothing by intent.
    "m = last(net(x)[:, :4]).square(); fit((m + (2 - m).detach()).mean(), mine)": [],
    "m = last(net(x)[:, :4]).square(); fit((m + (m > 1).float() - m.detach()).mean(), mine)": [],
    "m = net(x)[:, :4]; fit((m - m.amax(1, keepdim=True).detach() + last(m)).mean(), mine)": [],
    "m = 0.1 * net(x); fit((last(m[:, :4]) + (m + (net(x) - m).detach())).mean(), mine)": [],
    # A term that is a plain number, wherever it is kept.
    "m = last(net(x)[:, :4]).mean(); k = net(x).mean().item(); fit(m + 0.5 * k, mine)": [
        ("GS303", "net(x).mean().item()")
    ],
    "g = 0.5; m = last(net(x)[:, :4]).mean(); fit(m - net(x).mean().item() * g, mine)": [
        ("GS303", "net(x).mean().item()")
    ],
    "m = last(net(x)[:, :4]).mean(); fit(m * net(x).mean().item() + 0.5, mine)": [],
    "m = {'a': last(net(x)[:, :4]).mean()}; m['b'] = net(x).mean().item(); "
    "fit(m['a'] - m['b'] * 2, mine)": [("GS303", "net(x).mean().item()")],
    "m = [last(net(x)[:, :4]).mean()]; m.append(float(net(x).mean())); fit(sum(m), mine)": [
        ("GS303", "float(net(x).mean())")
    ],
    "m = last(net(x)[:, :4]).mean(); k = net(x).sum().item(); fit(m + 1.5, mine); print(m + k)": [],
    "m = last(net(x)[:, :4]).mean(); k = m.item(); fit(m + (2.5 - k), mine)": [],
    "m = last(net(x)[:, :4]).mean(); k = net(x).mean().item(); fit(m * k, mine)": [],
    "m = last(net(x)[:, :4]).mean(); k = net(x).mean().item(); m += k; fit(m, mine)": [
        ("GS303", "net(x).mean().item()")
    ],
    "m = last(net(x)[:, :4]).mean(); k = m.item(); m -= k; fit(m, mine)": [],
    # One that numpy has computed.
    "m = last(net(x)[:, :4]).mean(); k = float(net(x).detach().numpy().std()); "
    "fit(m + 0.5 * k, mine)": [("GS303", "net(x).detach()")],
    "m = last(net(x)[:, :4]).mean(); h = net(x).detach().numpy(); k = h.std(); m = m - k; "
    "fit(m, mine)": [("GS303", "net(x).detach()")],
    "m = last(net(x)[:, :4]).mean(); h = net(x).detach().numpy(); k = h.std(); "
    "fit(float(k) * m + 0.5, mine)": [],
    "m = last(net(x)[:, :4]).mean(); h = net(x).detach().numpy(); k = h.std(); b = 0.5; "
    "fit(m + b, mine); print(k)": [],
    "m = last(net(x)[:, :4]).mean(); h = net(x).detach().numpy(); k = h.std(); b = 0.5; "
    "fit(m * k + b, mine)": [],
    # A part of a layer.
    "q, k, v = net(x).chunk(3, -1); "
    "fit(last(torch.softmax(q @ k.T, -1).detach() @ v).mean(), mine)": [
        ("GS311", "torch.softmax(q @ k.T, -1).detach()")
    ],
    "q, k, v = net(x).view(16, 3, 4).unbind(1); fit(last((q > 0) * k + v).square().mean(), mine)": [
        ("GS311", "q > 0")
    ],
    "h = net(x); fit(last(h[:, :4] * h[:, 4:8].detach()).square().mean(), mine)": [
        ("GS311", "h[:, 4:8].detach()")
    ],
    "q, k, v = net(x).chunk(3, -1); w = torch.softmax(q @ k.T, -1).detach(); "
    "fit(last(w @ v + 0.1 * (q + k)).mean(), mine)": [],
    "w, s = net(x).chunk(2); "
    "fit((w - s.detach()).square().mean() + last(w[:, :4]).mean(), mine)": [],
    "h = net(x); last(h[:, :4] * h[:, 4:8].detach()).mean().backward(retain_graph=True); "
    "h[:, 4:].square().mean().backward(); mine.step(); mine.zero_grad()": [],
    "h = net(x); fit(last((h / h.norm().detach())[:, :4]).square().mean(), mine)": [],
    # Whole numbers among others.
    "h = net(x)[:, :2]; fit(last(torch.cat([h, h.int()], 1)).square().mean(), mine)": [
        ("GS311", "h.int()")
    ],
    "h = net(x)[:, :2]; fit(last(torch.cat([h, h.round().int()], 1)).mean(), mine)": [],
    "h = net(x)[:, :4]; fit(last(h - h.long()).square().mean(), mine)": [],
}


@pytest.mark.parametrize("body", TOLD)
def test_what_a_part_is_cut_off_from(body: str, session: Session) -> None:
    lines = "".join(f"    {line.strip()}\n" for line in body.split("; "))
    report = session.look(HEAD.format(body=lines), "-q", "--steps", "all", command="doctor")
    found = [one for one in report.findings if one.severity != "information"]
    told = [(one.rule, one.location.expression if one.location else "") for one in found]
    assert told == TOLD[body]


WAYS: dict[str, str] = {
    # Into a layer, or joined, beside other ways.
    "fit((last(h) + last(torch.tanh(h.detach()) @ other.weight)).square().mean(), both)": (
        "h.detach()"
    ),
    "fit(last(other(torch.relu(h.data) / 2) + h).square().mean(), both)": "h.data",
    "fit(F.cross_entropy(torch.cat([h.detach(), h * 2], 1), y), mine)": "h.detach()",
    "with torch.no_grad(): r = net(x)[:, :4]; fit(last(h + other(r)).square().mean(), both)": (
        "with torch.no_grad()"
    ),
    # No step changes it, now or ever.
    "fit(last(other(x).detach()).square().mean() + last(h).mean(), mine)": "",
    # A target, a weight, a value that is kept, a sample.
    "fit((last(h) - last(h * 2).detach()).square().mean(), mine)": "",
    "fit((last(h) * last(h * 2).detach()).mean(), mine)": "",
    "fit(last(h + (h.round() - h).detach()).square().mean(), mine)": "",
    "fit(last(h / h.norm().detach()).square().mean(), mine)": "",
    "fit(last(torch.softmax(h - h.max().detach(), 1)).square().mean(), mine)": "",
    "a = torch.distributions.Normal(h, 1.0).sample(); fit((last(a) * h).mean(), mine)": "",
    "fit((last(F.one_hot(h.argmax(1), 4).float()) + h).square().mean(), mine)": "",
    # State that is carried over.
    "s = h if i < 1 else s; g = last(s.detach() + h) + last(h); s = h; fit(g.mean(), mine)": "",
    # The average of a target network.
    "with torch.no_grad(): t.lerp_(net.weight, 0.1); fit(last(h + x @ t[:4].T).mean(), mine)": "",
}


@pytest.mark.parametrize("body", WAYS)
def test_one_way_of_several_is_told_as_information(body: str, session: Session) -> None:
    head = HEAD.replace("for _ in", "t = torch.zeros(12, 4)\nfor i in")
    head = head.replace("torch.randn(16, 1)", "torch.arange(16) % 8")
    lines = "    h = net(x)[:, :4]\n" + "".join(f"    {one.strip()}\n" for one in body.split("; "))
    report = session.look(head.format(body=lines), "-q", "--steps", "all", command="doctor")
    found = [one for one in report.findings if one.rule == "GS317"]
    assert [one.severity for one in found] == ["information"] * bool(WAYS[body])
    told = [one.location.expression for one in found if one.location]
    assert told == ([WAYS[body]] if WAYS[body] else [])


ASTRAY = {
    # A critic judges what was drawn, beside the condition that it was drawn for.
    "other(d.detach()) * h": ["warning"],
    "other(d) * h": [],
    # What the layers give learns by this step, or the term reaches all that was cut off.
    "last(d.detach()) * h": ["information"],
    "other(h.detach()) * d": ["information"],
}


@pytest.mark.parametrize("term", ASTRAY)
@pytest.mark.parametrize("steps", ["mine", "mine, theirs"])
def test_a_way_into_layers_of_another_optimizer_is_a_warning(
    term: str, steps: str, session: Session
) -> None:
    lines = (
        "    h = net(x)[:, :4]; d = last(h).expand(-1, 4)\n"
        f"    fit(({term}).square().mean() + (d - y).square().mean(), {steps})\n"
    )
    report = session.look(HEAD.format(body=lines), "-q", command="doctor")
    found = [one.severity for one in report.findings if one.rule == "GS317"]
    assert found == (ASTRAY[term] if steps == "mine" else ["information"] * bool(ASTRAY[term]))


BLOCKS = """
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
torch.manual_seed(0)
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.inner = nn.LayerNorm(4), nn.Linear(4, 4)
    def forward(self, x):
        return x + torch.tanh(self.inner(self.norm(x)))
blocks, last = nn.ModuleList(Block() for _ in range(4)), nn.Linear(4, 1)
optimizer = torch.optim.SGD([*blocks.parameters(), *last.parameters()], lr=0.1)
for _ in range(3):
    x = torch.randn(8, 4)
    for block in {blocks}:
        {line}
    optimizer.zero_grad()
    last(x).square().mean().backward()
    optimizer.step()
"""

STARVED = {
    "x = block(x).detach()": "GS303",
    "x = torch.tensor(block(x).tolist())": "GS303",
    "x = block(x).data": "GS303",
    "x = checkpoint(block, x, use_reentrant=True)": "GS309",
    "x = torch.no_grad()(block)(x)": "GS304",
}


@pytest.mark.parametrize("line", STARVED)
def test_a_cut_in_a_loop_is_one_finding_for_all_blocks(line: str, session: Session) -> None:
    text = BLOCKS.format(line=line, blocks="blocks")
    report = session.look(text, "-q", "--steps", "all", command="doctor")
    (found,) = report.findings
    assert (found.rule, found.subject) == (STARVED[line], "blocks")
    assert found.location is not None
    assert found.location.line == text[: text.index(line)].count("\n")
    assert "16 parameters" in found.message


@pytest.mark.parametrize(("repeated", "more"), [(3, "blocks.0, blocks.1"), (4, "blocks.0")])
def test_a_place_that_brings_nothing_new_is_not_searched_for_ever(
    repeated: int, more: str, session: Session
) -> None:
    order = ", ".join(["blocks[0]"] * repeated + ["blocks[1]"])
    line = "x = block(x).detach()"
    text = BLOCKS.format(line=line, blocks=f"[{order}]").replace("[*blocks.", "[*blocks[:2].")
    report = session.look(text, "-q", "--steps", "all", command="doctor")
    seen = report.observations
    assert seen is not None
    (cut,) = (cut for cut in seen.cuts if cut.function == "detach")
    held = {".".join(name.split(".")[:2]) for name in cut.leaves}
    assert ", ".join(sorted(held)) == more


@pytest.mark.parametrize(("others", "rules"), [(3, ["GS310"]), (4, [])])
def test_a_graph_may_wait_for_others(others: int, rules: list[str], session: Session) -> None:
    body = f"""
    h = net(x)[:, :4]
    loss = other(h.detach()).mean() + last(h).mean()
    for _ in range({others}):
        other(x).mean().backward()
    fit(loss, mine)
"""
    report = session.look(HEAD.format(body=body), "-q", "--steps", "all", command="doctor")
    told = [one.rule for one in report.findings if one.severity != "information"]
    # That the optimizers of `other` never step is another matter.
    assert [rule for rule in told if rule != "GS505"] == rules


GROWING = {
    "(ratio * column).mean()": "ratio * column",
    "-torch.min(ratio * column, ratio.clamp(0.8, 1.2) * column).mean()": "ratio * column",
    "torch.min(ratio, column).sum()": "torch.min(ratio, column)",
    "torch.where(ratio > 1, ratio, column).mean()": "torch.where(ratio > 1, ratio, column)",
    "(ratio - column).clamp(max=1).norm()": "ratio - column",
    "F.softplus(-ratio * column).mean().log()": "-ratio * column",
    "(ratio - (target + values.detach())).square().mean()": "target + values.detach()",
    "torch.distributions.Normal(values, 1.0).log_prob(target).mean()": (
        "torch.distributions.Normal(values, 1.0).log_prob(target)"
    ),
    # On purpose, or not summed up as it is.
    "(ratio - above).square().mean()": "",
    "(ratio[:, None] - ratio).square().mean()": "",
    "torch.softmax(ratio - column, -1).diag().sum()": "",
    "(ratio * (gap - steps).exp().sum(1)).mean()": "",
    "(ratio * column.squeeze(1)).mean()": "",
}


@pytest.mark.parametrize("loss", GROWING)
def test_a_column_against_a_row_on_the_way_to_the_loss(loss: str, session: Session) -> None:
    text = f"""
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
net = nn.Linear(3, 1)
x, target, column, steps = torch.randn(6, 3), torch.randn(6), torch.rand(6, 1), torch.arange(6.0)
gap = steps.view(6, 1)
values = net(x)
ratio = values.squeeze(1).exp()
above = ratio.unsqueeze(1)
({loss}).backward()
"""
    report = session.look(text, "-q", command="doctor")
    found = [one for one in report.findings if one.severity != "information"]
    told = [one.location.expression for one in found if one.location and one.rule == "GS503"]
    assert told == [loss_of for loss_of in [GROWING[loss]] if loss_of]
    assert len(found) == len(told)


LOSSES: dict[str, tuple[str, str] | None] = {
    # Nothing of it learns: told at what made the prediction of it, or else at the loss function.
    "with torch.no_grad(): t = other(x); p = t / 2; fit(own + F.mse_loss(p, t), mine)": (
        "GS316",
        "t / 2",
    ),
    "with torch.no_grad(): t = other(x); fit(own + 0.5 * F.kl_div(t, t.exp()), mine)": (
        "GS316",
        "F.kl_div(t, t.exp())",
    ),
    "fit(own + 0.5 * F.l1_loss(x, 2 * x, reduction='none').mean(), mine)": (
        "GS316",
        "F.l1_loss(x, 2 * x, reduction='none')",
    ),
    "fit(own + nn.SmoothL1Loss()(input=x, target=2 * x), mine)": (
        "GS316",
        "nn.SmoothL1Loss()(input=x, target=2 * x)",
    ),
    "fit(sum([own, F.mse_loss(y, y)]), mine)": ("GS316", "F.mse_loss(y, y)"),
    # A step changes what was cut off: that is the fault.
    "p = net(x).detach(); fit(own + F.mse_loss(p, p * 2), mine)": ("GS303", "net(x).detach()"),
    # It is logged, or taken off as a constant, or weighs what does learn.
    "m = F.mse_loss(x, 2 * x); fit(own, mine)": None,
    "m = F.mse_loss(x, 2 * x); fit(own, mine); print((own + m).item())": None,
    "fit(own - F.mse_loss(x, 2 * x), mine)": None,
    "fit(own * F.mse_loss(x, 2 * x), mine)": None,
    # Something in it learns, now or later.
    "fit(own + F.mse_loss(other(x), x), mine)": None,
    "with torch.no_grad(): t = other(x); fit(own + F.mse_loss(net(x)[:, :4], t), mine)": None,
    "part = net(x)[:, :4] if i > 1 else x; fit(own + F.mse_loss(part, 2 * x), mine)": None,
    "part = net(x)[:, :4] if i < 1 else x; fit(own + F.mse_loss(part, 2 * x), mine)": None,
    # Nothing steps.
    "(own + F.mse_loss(y, y)).backward()": None,
}


@pytest.mark.parametrize("body", LOSSES)
def test_a_loss_of_constants(body: str, session: Session) -> None:
    head = HEAD.replace("for _ in range(4):", "for i in range(4):")
    if "fit" not in body:
        head = "\n".join(line for line in head.splitlines() if "torch.optim" not in line)
        head = head.replace("{body}", "") + "\n{body}"
    lines = "".join(f"    {line}\n" for line in ["own = last(net(x)[:, :4]).square().mean()"])
    lines += "".join(f"    {line.strip()}\n" for line in body.split("; "))
    report = session.look(head.format(body=lines), "-q", "--steps", "all", command="doctor")
    found = [one for one in report.findings if one.severity != "information"]
    told = [(one.rule, one.location.expression if one.location else "") for one in found]
    wanted = LOSSES[body]
    assert told == ([] if wanted is None else [wanted])


@pytest.mark.parametrize(
    ("loss", "terms"),
    [
        ("a = F.mse_loss(q, x); b = h.square().mean(); fit(a + b, mine, theirs)", ["a", "b"]),
        ("a = F.mse_loss(q, x); b = last(x).mean(); fit(a + b, mine, theirs)", ["a"]),
        ("a = F.mse_loss(q, x); fit(a, mine, theirs)", []),
    ],
)
def test_the_terms_that_what_was_cut_off_is_in(
    loss: str, terms: list[str], session: Session
) -> None:
    body = f"h = net(x)[:, :4]; q = h + (other(x) - h).detach(); h = last(q); {loss}"
    lines = "".join(f"    {line.strip()}\n" for line in body.split("; "))
    report = session.look(HEAD.format(body=lines), "-q", "--steps", "all", command="doctor")
    (found,) = [one for one in report.findings if one.rule == "GS303"]
    told = [one for one in found.evidence if "terms of the loss" in one]
    assert len(told) == bool(terms)
    expressions = {"a": "F.mse_loss(q, x)", "b": "h.square().mean()"}
    assert all(expressions[term] in told[0] for term in terms)
    assert report.observations is not None
    (cut,) = (one for one in report.observations.cuts if one.function == "detach")
    assert len(cut.terms) == len(terms)


# What a call fails on that calls before have reached; the program says it in the last line.
REFUSED = """
class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x
    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient):
        return 2 * ctx.saved_tensors[0] * gradient
u = x.clone().requires_grad_()
seen = u.detach().mean()
net(u).square().mean().backward()
{body}
"""

CAUSES: dict[str, str] = {
    "g, = torch.autograd.grad(net(u).square().mean(), u); torch.autograd.grad(g[:, 0].sum(), u)": (
        "torch.autograd.grad(net(u).square().mean(), u)"
    ),
    "g, = torch.autograd.grad(net(u).square().mean(), u); (g * 2).sum().backward()": (
        "torch.autograd.grad(net(u).square().mean(), u)"
    ),
    "h = Square.apply(u).sum(); g, = torch.autograd.grad(h, u, create_graph=True); "
    "g.sum().backward()": "torch.autograd.grad(h, u, create_graph=True)",
    "h = net(u).detach(); k = h.argmax(); h.square().sum().backward()": "net(u).detach()",
    "with torch.no_grad(): h = net(u); h.square().sum().backward()": "with torch.no_grad()",
    "with torch.no_grad(): h = net(u); F.mse_loss(h, x.repeat(1, 3)).backward()": (
        "with torch.no_grad()"
    ),
}


@pytest.mark.parametrize("body", CAUSES)
def test_what_cut_the_root_of_a_refused_call_off(body: str, session: Session) -> None:
    head = HEAD.partition("for _")[0]
    text = head + REFUSED.format(body="\n".join(body.replace("): h", "):\n    h").split("; ")))
    report = session.look(text, "-q", "--steps", "all", command="doctor")
    found = [one for one in report.findings if one.severity == "error"]
    told = [one.location.expression if one.location else "" for one in found]
    assert told == [CAUSES[body]]
    is_marked = "create_graph" in body
    assert ("once_differentiable" in found[0].remedy) is is_marked
