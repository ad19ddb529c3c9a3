"""What a finding says was seen, in that call: each sentence of it rests on a number.

Programs in which the cause is another than that of most programs with the same finding."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from gradscope.model.observations import Finding
from gradscope.model.studies import WRITES_UPSTREAM
from gradscope.words import added_up, misfit
from tests.looking import Session
from tests.own_functions import function
from tests.ranks.running import run


class Case(NamedTuple):
    """A program, the line and the rule of its finding ("" for none), what that says, and what it
    does not."""

    program: str
    rule: str
    line: int
    says: tuple[str, ...] = ()
    never: tuple[str, ...] = ()


def words(finding: Finding) -> str:
    """All sentences of a finding."""
    return " ".join((finding.message, *finding.evidence, finding.why, finding.remedy))


CLIPPED = """\
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Linear(3, 1)
given = {given}
optimizer = torch.optim.SGD({held}, lr=0.1)
for _ in range(8):
    optimizer.zero_grad()
    {before}
    net(torch.randn(6, 3)).square().mean().backward()
    nn.utils.clip_grad_norm_({clipped}, 0.5)
    optimizer.step()
"""


def clipped(given: str, held: str, taken: str = "given", before: str = "") -> str:
    return CLIPPED.format(given=given, held=held, clipped=taken, before=before)


ORDER = ("between `loss.backward()`", "each time the gradients were none")
EMPTY = ("gets no parameters", "gone through before", "list(model.parameters())")
CLIPS = {
    "used up by the first step": Case(
        clipped("net.parameters()", "net.parameters()"), "GS506", 11, ("7 times", *EMPTY), ORDER
    ),
    "a list is not": Case(clipped("list(net.parameters())", "given"), "GS506", 0),
    "what gives nothing by itself is not": Case(
        clipped("()", "net.parameters()", "(p for p in net.parameters() if p.grad is None)"),
        *("GS506", 0),
    ),
    "before backward": Case(
        clipped("list(net.parameters())", "given", before="nn.utils.clip_grad_norm_(given, 1.0)"),
        *("GS506", 9, ("Clip between `loss.backward()`",), (*EMPTY, "of any size")),
    ),
}  # fmt: skip


FUNCTION = """\
import torch
from torch import nn
torch.manual_seed(0)
class Gain(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, gain{taken}):
        ctx.save_for_backward(x)
        ctx.gain = gain
        return x * gain.factor
    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.gain.factor.detach(), None{given}
class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.factor = nn.Parameter(torch.ones(3))
    def forward(self, x):
        return Gain.apply(x, self{argument})
net = nn.Sequential({layers})
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    net(torch.randn(4, 3)).square().mean().backward()
    optimizer.step()
"""
UNSEEN = ("no history for its result", "its inputs depend on", "its result depends on nothing")
ARGUMENTS = {
    "its result has a history": Case(
        FUNCTION.format(taken="", given="", argument="", layers="nn.Linear(3, 3), Layer()"),
        "GS303", 18, ("inside of it, and no argument: 1.factor", "no argument of it"), UNSEEN,
    ),
    "it is an argument": Case(
        FUNCTION.format(
            taken=", factor", given=", (grad * ctx.saved_tensors[0]).sum(0)",
            argument=", self.factor", layers="nn.Linear(3, 3), Layer()",
        ),
        "GS303", 0,
    ),
}  # fmt: skip


REFUSED = """\
import torch
x = torch.ones(2, requires_grad=True)
loss = (x * 3).sum()
{call}
"""
RESHAPED = ("reshape",)
REFUSALS = {
    "several numbers for one": Case(
        REFUSED.format(call="loss.backward(torch.ones(2))"), "GS403", 4,
        (added_up(2, 1)[1:], misfit("[2]", "[]"), "of shape []"), RESHAPED,
    ),
    "other numbers of elements": Case(
        REFUSED.format(call="(x * 3).backward(torch.ones(3))"), "GS403", 4,
        (misfit("[3]", "[2]"), "of shape [2]"), (*RESHAPED, "early versions"),
    ),
    "as many elements": Case(
        REFUSED.format(call="(x * 3).backward(torch.ones(2, 1))"), "GS403", 4,
        (misfit("[2, 1]", "[2]"), *RESHAPED), ("early versions",),
    ),
}  # fmt: skip


def test_a_misfit_is_told_in_the_same_words_by_every_command(session: Session) -> None:
    text = REFUSALS["several numbers for one"].program
    (note,) = session.look(text).notes
    assert misfit("[2]", "[]") in note
    assert added_up(2, 1) in note


SAVED = """\
import torch
from torch import nn
torch.manual_seed(0)
part = {part}
table = {table}
out = {out}
(out.sum() + table.sum()).backward()
"""
OWN_CHANGES = {
    "the weight of an embedding": Case(
        SAVED.format(
            part="nn.Embedding(6, 3, max_norm=0.5)", table="part.weight.square()",
            out="part(torch.tensor([1, 4]))",
        ),
        "GS401", 6, ("changes its weight in place (max_norm)", "changed by embedding"),
    ),
    "running statistics": Case(
        SAVED.format(
            part="nn.InstanceNorm1d(3, track_running_stats=True)",
            table="nn.Parameter(torch.ones(3)) * part.running_mean",
            out="part(torch.randn(2, 3, 4))",
        ),
        "GS401", 6, ("changes its running statistics in place", "changed by instance_norm"),
    ),
    "nobody saw by what": Case(
        SAVED.format(
            part="torch.ones(3, requires_grad=True) * 2", table="part * part",
            out="torch._C._autograd._unsafe_set_version_counter((part,), (7,)) or part",
        ),
        "GS401", 5, ("is changed in place", "a call that was not seen"), (" changes a tensor",),
    ),
}  # fmt: skip


HOOKED = f"""\
import torch
{function("Halved", "x / 2", "grad.div_(2)")}\
x = torch.tensor([1.0, 2.0], requires_grad=True)
h = x * 3
other = h * 5
{{line}}
"""
SQUARED = "other.square().sum().backward()"
WRITTEN = {
    "turned round": Case(
        HOOKED.format(line=f"h.register_hook(lambda grad: -grad); {SQUARED}"),
        *("GS504", 12, ("A hook (`h.register_hook", "other numbers"), ("not seen",)),
    ),
    "by next to nothing": Case(
        HOOKED.format(line=f"h.register_hook(lambda grad: grad * 1.00001); {SQUARED}"),
        *("GS504", 12, ("A hook (`h.register_hook", "before", "after"), ("other numbers",)),
    ),
    "a copy": Case(HOOKED.format(line=f"h.register_hook(torch.clone); {SQUARED}"), "GS504", 0),
    "looked at": Case(
        HOOKED.format(line=f"h.register_hook(lambda grad: None); {SQUARED}"), "GS504", 0
    ),
    "by a backward": Case(
        HOOKED.format(line="(other + Halved.apply(h)).square().sum().backward()"),
        *("GS504", 11, ("Something that was not seen", "‖g‖ "), ("A hook", "remove the hook")),
    ),
}


BEYOND = """\
import torch
x = torch.tensor([{x}, 2.0], requires_grad=True)
y = torch.tensor([{y}, 3.0], requires_grad=True)
for _ in range({steps}):
    z = {made}
    x.grad = y.grad = None
    (z * {factor}).sum().backward()
"""
POLES = (
    "is not finite for these inputs",
    "divisor is 0",
    "at 0 is infinite",
    "0 times a derivative",
)
NONE_SAVED = ("in the evidence", "keep the operand away")
LARGEST = "largest number of its dtype, 3.4e+38"


def beyond(made: str, x: str, y: str = "1.0", factor: str = "1.0", steps: int = 1) -> str:
    return BEYOND.format(made=made, x=x, y=y, factor=factor, steps=steps)


OVERFLOWS = {
    "a product": Case(
        beyond("x * y", "1e20", "1e-30", "1e25"),
        *("GS102", 5, ("1e+25 times 1e+20", LARGEST), POLES),
    ),
    "a divisor of 0": Case(
        beyond("torch.where(y > 0, x / y, y)", "1e-9", "0.0"),
        *("GS102", 5, POLES[1:2], (LARGEST,)),
    ),
    "a root of next to nothing": Case(
        beyond("x.sqrt()", "1e-30", factor="1e30"),
        *("GS102", 5, ("is not finite, or",), POLES),
    ),
    "what had saved nothing": Case(
        beyond("torch.add(x, y * 1e-10, alpha=1e24)", "1.0", factor="1e15"),
        *("GS102", 5, ("is not finite, or",), (*POLES, *NONE_SAVED)),
    ),
    "a root of 0": Case(beyond("x.sqrt()", "0.0"), "GS102", 5, POLES[2:3], ("dtype",)),
    "a power above 1": Case(
        beyond("(x * (x < 2)) ** 1.5", "1.0", factor="3e38"),
        *("GS102", 5, ("3e+38 times 1.5", LARGEST), POLES),
    ),
    "a power whose base is a number": Case(
        beyond("torch.pow(2.0, x * 300).clamp(max=1)", "1.0"),
        *("GS102", 5, POLES[:1], (POLES[2], "below 1")),
    ),
    "a root of 0 in half precision": Case(
        beyond("x.half() ** 0.5", "0.0"), "GS102", 5, POLES[2:3], ("65,504", "GradScaler")
    ),
}  # fmt: skip


PAIRED = """\
import torch
import torch.nn.functional as F
x = torch.ones({given}, requires_grad=True)
loss = F.{loss}({made}, torch.zeros({target}))
loss.backward()
"""


def paired(given: str, target: str, says: str, loss: str = "mse_loss", made: str = "x * 2") -> Case:
    text = PAIRED.format(given=given, target=target, loss=loss, made=made)
    return Case(text, "GS503", 4, (f"Give both the same shape{says}.",))


PAIRS = {
    "a channel": paired("4, 1, 8, 8", "4, 8, 8", ": `.squeeze(1)` on that of [4, 1, 8, 8]"),
    "a target that is a column": paired(
        "4, 1", "4, 1", ": `.squeeze(1)` on that of [4, 1]", "l1_loss", "x.squeeze()"
    ),
    "two dimensions": paired("4, 1, 1", "4", ": `.squeeze((1, 2))` on that of [4, 1, 1]"),
    "no dimension of length 1 alone": paired("4, 3, 1", "4", ""),
}


MASKED = """\
import torch
from torch import nn
torch.manual_seed(0)
att, keys = nn.MultiheadAttention(4, 2, batch_first=True), nn.Linear(4, 4)
x = torch.randn(3, 5, 4)
padded, later = torch.zeros(3, 5, dtype=torch.bool), torch.ones(5, 5, dtype=torch.bool).triu(1)
{masks}
out = {out}
out.sum().backward()
"""
UNSEEN_PLACE = ("was not seen", "given are finite.")
GIVEN = "att(x, x, x, key_padding_mask=padded, attn_mask=later)[0]"
NAN = "makes NaN; the tensors that it is given are finite but for a mask of infinities"
MASKS = {
    "all of a sample": Case(
        MASKED.format(masks="padded[2] = True", out="att(x, x, x, key_padding_mask=padded)[0]"),
        "GS101", 8, (NAN, "Softmax in it: row [2] of the mask is -inf from end to end"),
        UNSEEN_PLACE,
    ),
    "two masks together": Case(
        MASKED.format(masks="padded[1, :2] = True", out=GIVEN),
        "GS101", 8, (NAN, "Softmax in it: row [1, 0] of the mask"), UNSEEN_PLACE,
    ),
    "nothing from end to end": Case(
        MASKED.format(masks="padded[1, 3:] = True", out=GIVEN), "GS101", 0
    ),
    "scores that overflow beside a mask": Case(
        MASKED.format(masks="padded[1, 3:] = True; x[0] *= 1e30", out=GIVEN),
        "GS101", 8, (NAN,), (*UNSEEN_PLACE, "every element is masked", "from end to end"),
    ),
    "moved behind the mask": Case(
        MASKED.format(
            masks="padded[2] = True",
            out="(x @ keys(x).mT).masked_fill(padded[..., None], -torch.inf).mT.clone().softmax(1)",
        ),
        "GS101", 8, (NAN, "every element is masked"), ("makes infinity", "larger than"),
    ),
    "moved beside infinities": Case(
        MASKED.format(
            masks="wide = torch.full((3, 5, 2), torch.inf)",
            out="torch.cat([keys(x), wide], -1).mT.clone().softmax(1)",
        ),
        "GS105", 7, (), ("makes infinity",),
    ),
}  # fmt: skip


DERIVED = """\
import torch
from torch import nn
from torch.autograd import forward_ad
from torch.func import functional_call, grad, jacrev, vmap
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
named = dict(net.named_parameters())
for _ in range({steps}):
    x = torch.ones(4, 3, requires_grad=True)
    {line}
    optimizer.zero_grad()
    {then}
"""
SQUARE = "slope.square().mean().backward(); optimizer.step()"
SLOPE = "(slope,) = torch.autograd.grad(net(x).sum(), x, create_graph=True)"
TRANSFORMED = (
    "slope = vmap(grad(lambda p, x: functional_call(net, p, (x,)).squeeze(), 1), (None, 0))"
)


def derived(line: str, then: str = SQUARE, steps: int = 2) -> str:
    return DERIVED.format(line=line, then=then, steps=steps)


DROPPED = ("computed and then dropped", "no operation takes it", "never used")
BY_NATURE = ("of which a derivative is taken", "only adds a constant")
DERIVATIVES = {
    "of each sample": Case(
        derived(f"{TRANSFORMED}(named, x.detach())"), "GS301", 11, BY_NATURE, DROPPED
    ),
    "forward": Case(
        derived(
            "with forward_ad.dual_level(): slope = forward_ad.unpack_dual(net("
            "forward_ad.make_dual(torch.ones(4, 3), torch.ones(4, 3)))).tangent"
        ),
        "GS301", 11, BY_NATURE, DROPPED,
    ),
    "asked for": Case(
        derived(SLOPE, "torch.autograd.grad(slope.square().sum(), [*named.values()])", 1),
        "GS301", 11, (*BY_NATURE, "allow_unused=True"), DROPPED,
    ),
    "dropped": Case(
        derived("slope, kept = torch.ones(4, 3) * named['0.weight'].sum(), net(x)", steps=4),
        "GS301", 11, DROPPED[:1], BY_NATURE,
    ),
}  # fmt: skip


GATHERED = """\
import os
import torch
import torch.distributed as dist
from torch import nn
rank, size = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
store = None if size > 1 else dist.HashStore()
dist.init_process_group("gloo", store=store, rank=rank, world_size=size)
torch.manual_seed(0)
class Given(torch.autograd.Function):
    @staticmethod
    def forward(ctx, own):
        parts = [torch.empty_like(own) for _ in range(size)]
        dist.all_gather(parts, own)
        return torch.stack(parts)
    @staticmethod
    def backward(ctx, grad):
        return grad[rank]
gate, body = nn.Linear(4, 2), nn.Linear(4, 2)
optimizer = torch.optim.SGD([*gate.parameters(), *body.parameters()], lr=0.1)
for _ in range(3):
    x = torch.randn(3, 4)
    share = gate(x).softmax(-1)
    parts = [torch.empty_like(share) for _ in range(size)]
    {gather}
    loss = (torch.stack(list(parts)).mean(0) * body(x)).square().mean() + {more}
    optimizer.zero_grad()
    loss.backward()
    for one in optimizer.param_groups[0]["params"]:
        _ = one.grad is None or dist.all_reduce(one.grad)
    optimizer.step()
dist.destroy_process_group()
"""


def gathered(gather: str, more: str = "0") -> str:
    return GATHERED.format(gather=gather, more=more)


BETWEEN = ("`dist.all_gather(parts, share)` all_gather cuts", "from rank to rank")
OWN = "dist.all_gather(parts, share); parts[rank] = share"
GATHERINGS = {
    "all of it": Case(
        gathered("dist.all_gather(parts, share)"),
        "GS303",
        24,
        BETWEEN,
        (*DROPPED, "Torch recorded"),
    ),
    "one way of two": Case(
        gathered("dist.all_gather(parts, share)", "share.square().mean()"), "GS303", 0
    ),
    "only the own part": Case(gathered(OWN), "GS303", 0),
    "by a Function with a backward": Case(gathered("parts = Given.apply(share)"), "GS303", 0),
}


def test_what_a_collective_of_two_ranks_cuts_off(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(GATHERINGS["all of it"].program, "utf-8")
    done = run(tmp_path, ["doctor", "train.py"])
    assert [one.status for one in done] == [1, 0], done
    assert "GS303 history-cut · warning · train.py:24" in done[0].out


ALONE = """\
import torch
from torch.nn.functional import cross_entropy, linear
x = torch.tensor({x}, requires_grad=True)
{line}
"""


def alone(rule: str, x: str, line: str, says: str = "", never: str = "None", at: int = 4) -> Case:
    return Case(ALONE.format(x=x, line=line), rule, at, (says,), (never,))


FEW = {
    "infinity in the call": alone(
        "GS101", "[1.0]", "(x * float('inf')).sum().backward()", "it is given", "goes into"),
    "a leaf that was read": alone(
        "GS101", "[1.0]", "(x.clamp(min=float('nan')) * 2).sum().backward()", "may be NaN itself"),
    "a leaf behind what passes it on": alone(
        "GS105", "[float('nan')]", "(x.relu() * 2).sum().backward()", "1 NaN, 0 infinite", at=3),
    "next to 0": alone("GS101", "[1e-30]", "(1e10 / x).sum().backward()", "so small that the"),
    "the root of 0": alone(
        "GS101", "[0.0]", "x.rsqrt().sum().backward()", "by the root of 0", "difference of"),
    "a branch that is taken": alone(
        "GS102", "[0.0]", "torch.where(x >= 0, x.sqrt(), x).sum().backward()", "at 0", "take this"),
    "a pole beside 0": alone(
        "GS102", "[-1.0, 0]", "torch.where(x > -1, x.log1p(), x).sum().backward()", "log1p at -1"),
    "a pole at 1": alone("GS102", "[1.0, 2]", "x.acosh().sum().backward()", "min=1 +", "±1"),
    "a result beside 0": alone(
        "GS102", "[-200.0, 88]", "x.exp().backward(x.new_tensor([1, 1e2]))", "largest", "is inf"),
    "one row of several": alone(
        "GS205", "[[2e2, 0]]", "(x.softmax(1)[0, 0] + 1).backward()", "nothing but", "a single"),
    "inside of the limits": alone(
        "GS205", "[2.0, 0.5]", "(x.clamp(0, 1)[0] - 3).square().backward()", "that gets a"),
    "factors that are not 0": alone(
        "GS205", "[0.0, 1]", "(x * x.detach().requires_grad_() + 5)[0].backward()", "as where"),
    "a tanh before cross_entropy": alone(
        "GS203", "[[9.0] * 20]", "cross_entropy(x.tanh(), x).backward()", "far", "softmax out"),
    "a mask in float16": alone(
        "GS205", "1.0", "(x.half() * x.half().new_zeros(()) * 3e-5 + 1).backward()", "0 itself"),
    "a way that learns": alone(
        "GS205", "[[0.0]]", "(linear(x, x.new_zeros(3, 1, requires_grad=True), "
        "x.new_zeros(3, requires_grad=True)) + 1).sum().backward()", "0 to 2 of 3 operands"),
    "nothing": alone("GS403", "[]", "(x * 2).backward()", "no single number", "more than one"),
    "by way of a text": alone("GS403", "1.0", "torch.tensor(float(f'{x}')).backward()", "", "went"),
}  # fmt: skip


LOOP = """\
import torch
from torch import nn
torch.manual_seed(0)
first, net = nn.Linear(3, 8), nn.Linear({width}, 1)
optimizer = torch.optim.SGD([*net.parameters(){held}], lr=0.01)
kept, array = [], first.weight.detach().numpy()
for n in range(70):
    {line}
    optimizer.step()
"""


def loop(*lines: str, width: int = 3, held: str = "") -> str:
    return LOOP.format(line="\n    ".join(lines), width=width, held=held)


PASS = "loss = net(torch.randn(6, 3)).square().mean()"
DOWN = "optimizer.zero_grad(); loss.backward()"
LOOPS = {
    "now and then zeroed": Case(
        loop("n % 3 or optimizer.zero_grad()", PASS, "loss.backward()"),
        "GS501", 10, ("what is left of earlier ones",), ("all gradients",)),
    "only measured": Case(
        loop("y = first(torch.ones(6, 3)).mean().item()", PASS, DOWN, held=", *first.parameters()"),
        "GS301", 8, ("no backward call comes back",)),
    "changed through numpy": Case(
        loop("loss = net(first(torch.ones(6, 3)).tanh()).mean()", DOWN, "array *= 0.9", width=8),
        "GS307", 5, ("so no step changes it",), ("never",)),
    "held beside others": Case(
        loop(PASS, DOWN, held=", nn.Parameter(torch.ones(3))"), "GS301", 5, ("1 parameter of an",)),
    "a gradient that is kept in part": Case(
        loop(PASS, "[p.grad.mul_(0.5) for p in net.parameters() if n]", "loss.backward()"),
        "GS501", 0),
    "what lets go of the oldest": Case(
        loop("import collections", PASS, DOWN,
             "last = globals().setdefault('last', collections.deque(maxlen=8)); last.append(loss)"),
        "GS502", 0),
    "kept under a key": Case(
        loop(PASS, 'held = globals().setdefault("held", {"all": []}); held["all"].append(loss)',
             DOWN),
        "GS502", 9, ('put there by `held["all"].append`',)),
    "a hook that gives nothing at first": Case(
        loop("y = net(torch.randn(6, 3)); y.register_hook(lambda grad: grad * (n > 2))",
             "loss = y.square().mean()", DOWN),
        "GS504", 8, ("changes a gradient",), ("makes the gradient zero",)),
    "a limit that is scaled, too": Case(
        loop("scaler = globals().setdefault('scaler', torch.amp.GradScaler('cpu', 1024.0))", PASS,
             "optimizer.zero_grad(); scaler.scale(loss).backward()",
             "nn.utils.clip_grad_norm_(net.parameters(), 0.1 * scaler.get_scale())",
             "scaler.step(optimizer); scaler.update(); optimizer.zero_grad()"),
        "GS506", 0),
    "a scale that is too large at first": Case(
        loop("scaler = globals().setdefault('scaler', torch.amp.GradScaler('cpu', 2.0**127))",
             "loss = (net(torch.randn(6, 3)) * 30 - 5).square().mean()",
             "optimizer.zero_grad(); scaler.scale(loss).backward()",
             "scaler.step(optimizer); scaler.update(); optimizer.zero_grad()"),
        "GS101", 10, ("expected in the first steps",)),
    "a step before the other loss": Case(
        loop("y = net(torch.relu(first(torch.ones(6, 3)))); optimizer.zero_grad()",
             "y.mean().backward(retain_graph=True); optimizer.step()",
             "y.square().sum().backward()",
             width=8, held=", *first.parameters()"),
        "GS401", 9, ("Compute `net(torch.relu", "is to be a part"), ("move the change",)),
    "a hook in a call seen briefly": Case(
        loop("y = net(torch.randn(6, 3)); y.register_hook(lambda grad: grad / float(n != 60))",
             "loss = y.square().mean()", DOWN),
        "GS102", 10, ("only briefly",), ("too large for its dtype",)),
}  # fmt: skip


SPOILING = """\
import torch
torch.manual_seed(0)
{doubled}
u, w = torch.randn(3, requires_grad=True), torch.randn(3, requires_grad=True)
({total}).square().sum().backward()
"""
SPOILT = ("not checked", "backward of Doubled changes the gradient that it is given in place")
WRONG = ("wrong", "")
SUM = "u.exp() + Doubled.apply(w)"
SPOILERS = {
    "into what it is given": (SUM, "grad.mul_(2)", WRONG),
    # In float64, as calls are repeated, it writes into a copy.
    "into what has that precision already": (SUM, "grad.float().mul_(2)", SPOILT),
    "along one leaf": ("u.exp() + Doubled.apply(u.exp())", "grad.float().mul_(2)", SPOILT),
    "into what has no other": ("Doubled.apply(w)", "grad.mul_(2)", None),
    "into a copy": (SUM, "grad.clone().mul_(2)", None),
}


@pytest.mark.parametrize("name", SPOILERS)
def test_what_spoilt_a_gradient(session: Session, name: str) -> None:
    total, returned, expected = SPOILERS[name]
    doubled = function("Doubled", "x * 2", returned)
    checks = session.look(SPOILING.format(total=total, doubled=doubled), command="check").checks
    assert checks is not None
    found = {(one.verdict, one.reason.split(":")[0]) for one in checks.leaves}
    assert found - {("right", "")} == ({expected} if expected else set())
    assert any(one.reason == WRITES_UPSTREAM for one in checks.calls) == ("clone" not in returned)


PROGRAMS = {
    "what clipping was given": CLIPS,
    "what a function was not given": ARGUMENTS,
    "what torch refused": REFUSALS,
    "what changed a saved tensor": OWN_CHANGES,
    "who changed a gradient": WRITTEN,
    "why a gradient is not finite": OVERFLOWS,
    "what a softmax was given": MASKS,
    "how two tensors get one shape": PAIRS,
    "what no derivative depends on": DERIVATIVES,
    "what a collective cuts off": GATHERINGS,
    "what was seen of few numbers": FEW,
    "what was seen of a loop": LOOPS,
}


@pytest.mark.parametrize(
    ("what", "name"), [(what, name) for what, cases in PROGRAMS.items() for name in cases]
)
def test_what_a_finding_says(session: Session, what: str, name: str) -> None:
    case = PROGRAMS[what][name]
    report = session.look(case.program, command="doctor")
    found = [one for one in report.findings if one.rule == case.rule]
    assert len(found) == bool(case.line), [(one.rule, words(one)) for one in report.findings]
    for one in found:
        assert one.location is not None
        assert one.location.line == case.line, one.location
        for text in case.says:
            assert text in words(one), words(one)
        for text in case.never:
            assert text not in words(one), words(one)
