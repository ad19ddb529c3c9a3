"""``gradscope check``: derivatives that are wrong are found, those that are right pass."""

from __future__ import annotations

import pytest

from gradscope.model import storage
from gradscope.model.report import Report
from gradscope.model.studies import CallCheck, Checks
from tests.looking import Session, expression_of
from tests.own_functions import function
from tests.wrong_functions import CASES, program

HEAD = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\ntorch.manual_seed(0)\n"


def checked(session: Session, text: str, *arguments: str) -> tuple[Report, Checks]:
    """What a check of a program finds."""
    report = session.look(text, *arguments, command="check")
    assert report.checks is not None
    return report, report.checks


def verdicts(checks: Checks) -> set[str]:
    """All verdicts on calls and leaves."""
    return {one.verdict for one in checks.calls} | {one.verdict for one in checks.leaves}


def named(report: Report, name: str) -> CallCheck:
    """The check of the call whose node has this op."""
    assert report.checks is not None
    return next(one for one in report.checks.calls if name in report.graph.nodes[one.nodes[0]].op)


# ---------------------------------------------------------------- custom Functions


@pytest.mark.parametrize("name", CASES)
def test_a_wrong_backward_is_found(name: str, session: Session) -> None:
    case = CASES[name]
    done = session.told(program(name, is_right=False), "check -o report.json")
    assert done.status == session.cli("check", "report.json").status == 1, done.err
    report = storage.load(session.folder / "report.json")
    assert report.checks is not None
    wrong = [one for one in report.checks.calls if one.verdict == "wrong"]
    # The custom Function, and nothing else, is named; with the input that it is wrong for.
    assert {report.graph.nodes[one.nodes[0]].kind for one in wrong} == {"custom"}
    found = {one.name: one for one in wrong[0].inputs}
    assert case.at in found
    if case.element is not None:
        assert found[case.at].element == case.element
    assert "wrong" in {one.verdict for one in report.checks.leaves} or case.element


def test_the_numbers_are_both_told(session: Session) -> None:
    (one,) = named(checked(session, program("wrong sign", is_right=False))[0], "Reciprocal").inputs
    assert one.element is not None
    weight = (0.5, 1.118034, 0.736068)[one.element[0]]
    scale = (0.5, 2.0, 3.0)[one.element[0]]
    assert one.analytic == pytest.approx(weight / scale**2)
    assert one.numeric == pytest.approx(-weight / scale**2)


def test_what_a_function_keeps_on_its_class_is_put_back(session: Session) -> None:
    text = """
import torch
LOG = []
class Own(torch.autograd.Function):
    count = 0
    @staticmethod
    def forward(ctx, x):
        Own.count += 1
        Own.last = x
        LOG.append(x.dtype)
        return x * 2
    @staticmethod
    def backward(ctx, grad):
        LOG.append("backward")
        return grad * 2
x = torch.ones(3, requires_grad=True)
Own.apply(x).sum().backward()
print(Own.count, Own.last is x, LOG)
"""
    done = session.told(text, "check --run-on -o report.json")
    assert done.out == "1 True [torch.float32, 'backward']\n"


def test_leaves_are_not_moved_where_their_slopes_cancel(session: Session) -> None:
    """An error that all of them share would not show."""
    text = f"{HEAD}{function('Square', 'x * x', 'grad * 2 * x * 1.01', keeps='x')}"
    text += "net = nn.Linear(4, 3)\nSquare.apply(net(torch.randn(8, 4))).mean().backward()\n"
    _, checks = checked(session, text)
    assert [one.verdict for one in checks.leaves] == ["wrong"] * 3


# ---------------------------------------------------------------- built-in operations

BUILT_IN = {
    "relu, abs and norm at exactly zero": (
        "z = torch.tensor([0.0, -1.0, 2.0, 0.0], requires_grad=True)\n"
        "loss = torch.relu(z).sum() + z.abs().sum() + torch.zeros(3).add(z[:3] * 0).norm()",
        {"right", "kink"},
    ),
    "ties of max pooling and of max": (
        "z = torch.ones(1, 1, 4, 4, requires_grad=True)\nloss = F.max_pool2d(z, 2).sum() + z.max()",
        {"right", "kink"},
    ),
    "complex numbers": (
        "c = torch.randn(5, dtype=torch.cfloat, requires_grad=True)\n"
        "loss = torch.fft.fft(c * c.conj().exp()).abs().pow(2).sum() + c.angle().sum()",
        {"right"},
    ),
    "in-place, views and indices": (
        "w = torch.randn(6, 6, requires_grad=True)\n"
        "buffer = torch.zeros(6, 6)\n"
        "buffer[0] = w[0] * 2\n"
        "buffer[1:3] = w[1:3].sin()\n"
        "part = buffer[2]\n"
        "part.mul_(3)\n"
        "other = buffer.clone()\n"
        "other += w.T.exp()\n"
        "loss = (buffer * other).sum() + w[w > 0].sum() + w.unbind()[2].prod()",
        {"right"},
    ),
    "what is detached is held fixed": (
        "w = torch.randn(4, requires_grad=True)\nloss = (w * w.detach() + w.data.exp() * w).sum()",
        {"right"},
    ),
    "dropout, embedding, attention, cross entropy": (
        "net = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)\n"
        "table = nn.Embedding(10, 8, padding_idx=0)\n"
        "out = net(table(torch.randint(10, (2, 7))))\n"
        "q = out.view(2, 7, 2, 4).transpose(1, 2)\n"
        "out = F.scaled_dot_product_attention(q, q, q, dropout_p=0.2).flatten(1)\n"
        "loss = F.cross_entropy(out, torch.tensor([3, 1]), label_smoothing=0.1)",
        {"right"},
    ),
    "what torch takes for granted": (
        "w = torch.randn(4, 4, requires_grad=True)\n"
        "values, axes = torch.linalg.eigh(w @ w.T)\n"
        "scores = torch.randn(9, 2, 5, requires_grad=True).log_softmax(-1)\n"
        "sizes = torch.tensor([9, 9]), torch.tensor([3, 2])\n"
        "ctc = F.ctc_loss(scores, torch.randint(1, 5, (2, 3)), *sizes)\n"
        "loss = axes.square().mul(w).sum() + values.sum() + ctc",
        {"right"},
    ),
    "a gradient in the loss": (
        "w = torch.randn(4, requires_grad=True)\n"
        "(slope,) = torch.autograd.grad((w**3).sum(), w, create_graph=True)\n"
        "loss = (slope**2).sum()",
        {"right"},
    ),
}


@pytest.mark.parametrize("name", BUILT_IN)
def test_built_in_operations_pass(name: str, session: Session) -> None:
    text, expected = BUILT_IN[name]
    call = "--call=2" if "create_graph" in text else "--every-call"
    report, checks = checked(session, f"{HEAD}{text}\nloss.backward()\n", "--every-call", call)
    assert verdicts(checks) == expected, checks
    assert checks.leaves
    assert len(report.graph.leaves) == len({n for one in checks.leaves for n in one.leaves})


def test_what_is_held_fixed_is_told(session: Session) -> None:
    text = f"{HEAD}{BUILT_IN['what is detached is held fixed'][0]}\n"
    text += "with torch.no_grad():\n    c = w * 2\n(loss * c.sum()).backward()\n"
    line = text.splitlines().index("with torch.no_grad():")
    told = " ".join(session.told(text, "check").out.split())
    held = [f"what {one} cuts at program.py:{line}" for one in ("detach", "data")]
    held.append(f"what is made with grad off at program.py:{line + 2}")
    assert f"held fixed, as backward does: {', '.join(held)}" in told


MATRIX = (
    "a = torch.randn(4, 4)\n"
    "s = (a @ a.mT + torch.eye(4)).requires_grad_()\n"
    "l = torch.linalg.cholesky(s.detach()).requires_grad_()\n"
    "b = torch.randn(4, 2, requires_grad=True)\n"
    "c = torch.randn(4, 4, dtype=torch.complex64)\n"
    "h = (c @ c.mH + torch.eye(4)).requires_grad_()\n"
)
HALF_READ = {
    "torch.cholesky_solve(b, l)": ("cholesky_solve", "lower triangular"),
    "torch.cholesky_solve(b, l.mT * 2, upper=True)": ("cholesky_solve", "upper triangular"),
    "torch.cholesky_inverse(l)": ("cholesky_inverse", "lower triangular"),
    "torch.linalg.pinv(s, hermitian=True)": ("linalg_pinv", "symmetric"),
    "torch.linalg.pinv(h, hermitian=True).abs()": ("linalg_pinv", "Hermitian"),
    "torch.view_as_real(torch.linalg.cholesky(h)).sin()": ("linalg_cholesky", "Hermitian"),
    "torch.linalg.eigvalsh(s * 2)": ("linalg_eigvalsh", "symmetric"),
    "torch.linalg.eigh(h)[1].abs() ** 3": ("linalg_eigh", "Hermitian"),
}


@pytest.mark.parametrize("name", HALF_READ)
def test_what_torch_assumes_of_a_matrix_is_granted_and_said(name: str, session: Session) -> None:
    function, form = HALF_READ[name]
    path = str(session.write(f"{HEAD}{MATRIX}({name}).square().sum().backward()\n"))
    done = session.cli("check", path, "-o", "report.json")
    assert done.status == 0, session.cli("check", "report.json").out
    checks = storage.load(session.folder / "report.json").checks
    assert checks is not None and verdicts(checks) <= {"right", "not checked"}
    words = f"and assumes that it is {form}: moved so that it stays so"
    (call,) = (one for one in checks.calls if one.function == function)
    assert words in call.reason or call.verdict == "not checked"
    words = f"{function} reads one triangle of its operand: moved so that it stays"
    assert any(words in one.reason for one in checks.leaves)


def test_and_so_in_every_round_of_a_loop(session: Session) -> None:
    text = (
        f"{HEAD}parts = [torch.randn(n, n) for n in (2, 3, 4)]\n"
        "ms = [(a @ a.T + torch.eye(len(a))).requires_grad_() for a in parts]\n"
        "b = torch.tensor(1.0, requires_grad=True)\nloss = b * 2\n"
        "for m in ms:\n    loss = loss + torch.linalg.eigvalsh(m).log().square().sum()\n"
        "loss.backward()"
    )
    _, checks = checked(session, text)
    assert checks.repeats
    assert verdicts(checks) == {"right"}, checks


def test_a_matrix_that_is_not_as_torch_assumes_makes_the_gradient_wrong(session: Session) -> None:
    text = (
        f"{HEAD}v = torch.randn(4, requires_grad=True)\n"
        "torch.linalg.eigvalsh(torch.outer(v, torch.randn(4))).pow(3).sum().backward()"
    )
    _, checks = checked(session, text)
    assert verdicts(checks) == {"right", "wrong"}
    (call,) = (one for one in checks.calls if one.reason)
    assert "assumes that it is symmetric, which it is not" in call.reason
    assert "reads one triangle of its operand" in checks.leaves[0].reason


def test_what_reads_a_part_of_a_matrix_reads_no_triangle(session: Session) -> None:
    # Of the three rows the last is kept, so that what is above the diagonal is not read.
    text = (
        f"{HEAD}x = torch.randn(3, 3, requires_grad=True)\n"
        "index = torch.tensor([[0, 0, 1]] * 3)\n"
        "torch.zeros(2, 3).scatter(0, index, x).square().sum().backward()"
    )
    _, checks = checked(session, text)
    assert verdicts(checks) == {"right", "wrong"}
    reasons = [one.reason for one in checks.calls] + [one.reason for one in checks.leaves]
    assert "triangle" not in " ".join(reasons)


def test_a_function_is_granted_what_it_hands_a_symmetric_matrix_on_to(session: Session) -> None:
    forward = "x = torch.cholesky_solve(b, torch.linalg.cholesky(a)); "
    forward += "ctx.save_for_backward(a, x); x"
    backward = "a, x = ctx.saved_tensors; gb = torch.linalg.solve(a, grad); ga = -gb @ x.mT; "
    for factor, verdict, status in ((1, "right", 0), (2, "wrong", 1)):
        returned = f"((ga + ga.mT) / 2 * {factor}, gb)"
        text = HEAD + function("Solve", forward, backward + returned, given="a, b") + MATRIX
        text += "Solve.apply(s, b).square().sum().backward()\n"
        assert session.cli("doctor", str(session.write(text))).status == status
        _, checks = checked(session, text)
        (call,) = (one for one in checks.calls if one.function == "Solve")
        assert call.verdict == verdict


def test_a_registered_operation_with_a_backward_of_its_own_is_no_operation_of_torch(
    session: Session,
) -> None:
    text = """
    import torch
    @torch.library.custom_op("gradscope_tests::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2
    twice.register_autograd(lambda ctx, grad: grad * 3)
    x = torch.randn(5, requires_grad=True)
    twice(x).sum().backward()
    """
    _, checks = checked(session, text)
    (wrong,) = (one for one in checks.calls if one.verdict == "wrong")
    assert (wrong.function, wrong.reason) == ("twice.default", "")


@pytest.mark.parametrize(
    ("text", "expected", "reason"),
    [
        # Where NaN goes in nothing can be said, and 0 times NaN is not 0.
        (
            "x = torch.linspace(-1, 2.1, 4900).reshape(70, 70).requires_grad_()\n"
            "w = torch.full((70, 70), 0.5, requires_grad=True)\n"
            "loss = torch.tan(torch.log(x * w)).sum()",
            {"right"},
            "its root is not finite",
        ),
        (
            "x = torch.tensor([1.0, float('nan'), 2.0], requires_grad=True)\nloss = x.nansum()",
            {"right"},
            "",
        ),
        ("x = torch.zeros(0, 3, requires_grad=True)\nloss = x.sum()", {"right"}, ""),
        ("loss = x = torch.tensor(2.0, requires_grad=True)", {"right"}, ""),
        ("x = torch.ones(2, requires_grad=True)\nloss = x.cfloat().abs().sum()", {"right"}, ""),
        # What moves as little as x is large, is lost in the rounding of 1.
        (
            "x = torch.full((1,), -3e-9).requires_grad_()\nloss = ((x - 1) ** 2).sum()",
            {"right"},
            "",
        ),
        (
            "x = torch.full((5000,), 3e-8).requires_grad_()\nloss = ((x - 1) ** 2).sum()",
            {"right"},
            "",
        ),
        # What is 0 in theory is 1e-7 in float32.
        (
            "x = torch.randn(3, 1, requires_grad=True)\nloss = F.normalize(x).square().sum()",
            {"right", "rounding"},
            "",
        ),
    ],
)
def test_numbers_at_the_edge_are_not_wrong(
    text: str, expected: set[str], reason: str, session: Session
) -> None:
    _, checks = checked(session, f"{HEAD}{text}\nloss.backward()")
    assert verdicts(checks) <= expected, checks
    assert checks.reason == reason
    assert checks.leaves or reason


@pytest.mark.parametrize(
    ("expression", "verdict", "reason"),
    [
        ("torch.distributions.Gamma(a, 1.0).rsample()", "meant", "is that of the distribution"),
        ("F.embedding(i, t, scale_grad_by_freq=True)", "meant", "by how often it is looked up"),
        ("F.embedding(i, t, max_norm=0.5)", "not checked", "changes in place an operand"),
        ("F.embedding_bag(i[None], t, max_norm=0.5)", "not checked", "changes in place an operand"),
        ("torch.normal(a, 1.0)", "meant", "torch gives samples no gradient: rsample"),
        (
            "F.gumbel_softmax(t, hard=True) * torch.randn(2)",
            "meant",
            "every leaf is behind a call that is meant, random or not checked",
        ),
    ],
)
def test_gradients_that_are_meant_to_be_others(
    expression: str, verdict: str, reason: str, session: Session
) -> None:
    text = (
        f"{HEAD}a = torch.tensor([1.5, 2.5], requires_grad=True)\n"
        "t = torch.randn(4, 2, requires_grad=True)\ni = torch.tensor([0, 1, 1])\n"
        f"({expression}).sum().backward()"
    )
    _, checks = checked(session, text)
    (found,) = (one for one in checks.calls if one.verdict != "right")
    assert found.verdict == verdict
    assert reason in f"{found.reason}; {checks.reason}"
    assert "wrong" not in verdicts(checks)


def test_an_input_is_called_as_the_program_calls_it(session: Session) -> None:
    text = (
        f"{HEAD}x = torch.randn(3, 3, requires_grad=True)\n"
        "w, v = torch.linalg.eigh(x @ x.T)\n((w * 2).sum() + v.abs().sum()).backward()"
    )
    report, checks = checked(session, text)
    names = {
        expression_of(report, report.graph.nodes[one.nodes[0]]): one.inputs[0].name
        for one in checks.calls
        if one.inputs
    }
    assert (names["w * 2"], names["v.abs()"]) == ("w", "v")


@pytest.mark.parametrize(
    ("loss", "name", "verdict", "reason", "leaves"),
    [
        # The last two columns of u are any basis of what is left; the program does not use them.
        (
            "u, s, v = torch.linalg.svd(x)\nloss = (u[:, :3] * s).square().sum() + u[:, :3].abs()",
            *("Svd", "unresolved", "when run alone, but not in the whole program", "right"),
        ),
        # What torch itself gets wrong.
        (
            "loss = torch.zeros(2).scatter(0, torch.tensor([0, 0, 1]), x[0]).square()",
            *("Scatter", "wrong", "an operation of torch itself", "wrong"),
        ),
        # Of a gradient that is sparse.
        (
            f"{function('Sine', 'x.sin()', 'grad * x.cos() * 1.01', keeps='x')}"
            "t = nn.Embedding(9, 4, sparse=True); loss = Sine.apply(t(torch.tensor([1, 2, 0, 2])))",
            *("Sine", "wrong", "", "wrong"),
        ),
        # A function of the program is granted no form of a matrix.
        (
            f"{function('Lower', 'x.tril()', 'grad')}loss = Lower.apply(x)",
            *("Lower", "wrong", "", "wrong"),
        ),
    ],
)
def test_a_call_that_differs_is_wrong_where_the_whole_program_is(
    loss: str, name: str, verdict: str, reason: str, leaves: str, session: Session
) -> None:
    made = f"{HEAD}x = torch.randn(5, 3, requires_grad=True)\n"
    report, checks = checked(session, f"{made}{loss}\nloss.sum().backward()\n")
    assert named(report, name).verdict == verdict
    assert reason in named(report, name).reason
    assert {one.verdict for one in checks.leaves} == {leaves}


def test_what_cannot_be_run_again_says_so(session: Session) -> None:
    report, checks = checked(
        session,
        """
        import torch
        from torch.utils.checkpoint import checkpoint
        w = torch.randn(3, requires_grad=True)
        v = torch.randn(3, requires_grad=True)
        h = checkpoint(torch.sin, w * 2, use_reentrant=True)
        (h * v).sum().backward()
        """,
    )
    opaque = named(report, "CheckpointFunction")
    assert opaque.verdict == "not checked"
    assert "hides what it runs" in opaque.reason
    # What follows it goes on with the values that the program had.
    assert named(report, "MulBackward0").verdict == "right"
    assert "reentrant" in checks.reason


@pytest.mark.parametrize(
    ("forward", "loss", "compared"),
    [
        # The backward of a clamp, of torch's own code, writes into what it makes.
        ("x.round()", "Rounded.apply(w.clamp(-1, 1)) * v", "v"),
        # With such a ctx the gradients of leaves are those of calls made again, of which none is.
        ("ctx.kept = [x]; x.round()", "Rounded.apply(w)", ""),
    ],
)
def test_leaves_behind_something_opaque_are_left_out(
    forward: str, loss: str, compared: str, session: Session
) -> None:
    text = HEAD + function("Rounded", forward, "grad")
    text += "w, v = (torch.randn(3, requires_grad=True) for _ in 'wv')\n"
    report, checks = checked(session, f"{text}({loss}).sum().backward()\n")
    names = [report.graph.leaves[n].names[0] for one in checks.leaves for n in one.leaves]
    assert "".join(names) == compared
    assert verdicts(checks) == {"meant", "right"}, checks
    which = "one leaf is" if compared else "every leaf is"
    assert checks.reason == f"{which} behind a call that is meant, random or not checked"


def test_a_program_that_gives_another_number_each_time_is_not_measured(session: Session) -> None:
    text = f"{HEAD}import random\n" + function(
        "Noise", "ctx.by = random.random(); x * ctx.by", "grad * ctx.by"
    )
    text += "u, v = (torch.randn(4, requires_grad=True) for _ in 'uv')\n"
    report, checks = checked(
        session, f"{text}(u.tanh().sum() + 1e-6 * Noise.apply(v).sum()).backward()\n"
    )
    assert named(report, "Noise").verdict == "random" and not checks.leaves
    assert checks.reason == "two runs with the same random state give different results"


def test_how_far_a_wrong_leaf_is_off_is_of_the_larger_number(session: Session) -> None:
    text = HEAD + function("Off", "x.tanh()", "grad * (1 - x.tanh()**2) * 1.3", keeps="x")
    text += "u, v = (torch.randn(9, requires_grad=True) for _ in 'uv')\n"
    _, checks = checked(session, f"{text}(Off.apply(u) * v.sin()).sum().backward()\n")
    (wrong,) = [one for one in checks.leaves if one.verdict == "wrong" and len(one.leaves) == 1]
    one, other, error = (float(n or 0) for n in (wrong.analytic, wrong.numeric, wrong.error))
    assert error == pytest.approx(abs(one - other) / max(abs(one), abs(other)), rel=1e-6)


def test_hooks_of_the_program_do_not_run_once_more(session: Session) -> None:
    text = """
import torch
w = torch.randn(3, requires_grad=True)
h = w * 2
h.register_hook(lambda grad: print("hook") or grad * 10)
h.sum().backward()
"""
    done = session.cli("check", str(session.write(text)), "--run-on", "-o", "report.json")
    assert (done.status, done.out) == (0, "hook\n")
    checks = storage.load(session.folder / "report.json").checks
    assert checks is not None
    assert [one.verdict for one in checks.leaves] == ["right"]
    assert "run without the program's hooks" in checks.reason


# ---------------------------------------------------------------- what is checked

LOOP = """
import torch
x = torch.tensor([1.0, 2.0], requires_grad=True)
y = x
for _ in range(4):
    y = y * 2
y.sin().backward(torch.tensor([1.0, 10.0]))
"""


def test_a_place_is_checked_once_unless_all_are_asked_for(session: Session) -> None:
    _, checks = checked(session, LOOP)
    assert (len(checks.calls), checks.repeats) == (2, 3)
    _, checks = checked(session, LOOP, "--every-call")
    assert (len(checks.calls), checks.repeats) == (5, 0)


SILENT = {
    "a fused optimizer": ("opt.step()", ""),
    "data": ("for one in model.parameters():\n        one.data -= one.grad", ""),
    "a batch norm that trains": ("opt.step()", "if step: model.eval()"),
}


@pytest.mark.parametrize("name", SILENT)
def test_numbers_that_change_without_a_version_are_seen(name: str, session: Session) -> None:
    change, before = SILENT[name]
    text = f"""{HEAD}
model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 1))
opt = torch.optim.Adam(model.parameters(), lr=0.5, fused=True)
for step in range(2):
    {before}
    opt.zero_grad()
    loss = model(torch.randn(16, 4) + 3).square().mean()
    loss.backward()
    {change}
"""
    _, checks = checked(session, text, "--call", "2")
    assert not checks.reason
    assert verdicts(checks) == {"right"}


HISTORY = {
    "detach_": "h = (w * 2).detach_()\nloss = (h * w).sum()",
    "requires_grad_": "a = w * u\nw.requires_grad_(False)\nb = w * u\nw.requires_grad_(True)\n"
    "loss = (a + b + a * w).sum()",
    "requires_grad": "a = w * k\nk.requires_grad_()\nloss = (a + w * k).sum()",
}
"""What takes the history of a tensor away, or gives it one, and changes no number."""


@pytest.mark.parametrize("name", HISTORY)
def test_history_that_comes_and_goes_is_seen(name: str, session: Session) -> None:
    made = "w, u = (torch.randn(3, requires_grad=True) for _ in 'wu')\nk = torch.randn(3)\n"
    report, checks = checked(session, f"{HEAD}{made}{HISTORY[name]}\nloss.backward()\n")
    assert verdicts(checks) == {"right"}
    assert len({one for leaf in checks.leaves for one in leaf.leaves}) == len(report.graph.leaves)


def test_one_node(session: Session) -> None:
    report, checks = checked(session, LOOP, "--node", "2")
    (one,) = checks.calls
    assert one.nodes == (2,)
    assert expression_of(report, report.graph.nodes[2]) == "y * 2"
    assert not checks.leaves


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--node", "99"], ["there is no node 99", "--node 0 to 5"]),
        (["--node", "5"], ["node 5 is a leaf", "leave --node out"]),
        (["--node", "x"], ["Invalid value for '--node'"]),
        (["--gradient", "[1]"], ["the gradient has shape [1]"]),
    ],
    ids=" ".join,
)
def test_what_does_not_fit(arguments: list[str], words: list[str], session: Session) -> None:
    done = session.cli("check", str(session.write(LOOP)), *arguments)
    assert done.status == 2
    assert all(word in done.err for word in words), done.err


def test_the_gradient_given_is_the_cotangent(session: Session) -> None:
    text = "import torch\nx = torch.tensor([2.0, 3.0], requires_grad=True)\ny = x * x\n"
    _, ones = checked(session, text, "--gradient", "ones")
    _, tens = checked(session, text, "--gradient", "[10, 10]")
    assert float(tens.leaves[0].numeric or 0) == pytest.approx(
        10 * float(ones.leaves[0].numeric or 0)
    )


# ---------------------------------------------------------------- how it is shown


@pytest.mark.parametrize("width", ["60", "80", "120"])
def test_a_wrong_one_is_told_with_its_place(width: str, session: Session) -> None:
    done = session.told(program("wrong for negative", is_right=False), "check --width", width)
    assert all(len(line) <= int(width) for line in done.out.splitlines())
    # Lines may be wrapped anywhere between words.
    words = " ".join(done.out.split())
    assert "at program.py:20: Elu.apply(x)" in words
    assert "element [77,5] of x" in words
    _, _, rows = done.out.partition("differences")
    assert rows.splitlines()[1].startswith("wrong")


def test_the_picture_marks_what_is_wrong(session: Session) -> None:
    name = next(iter(CASES))
    for is_right in (False, True):
        picture = session.told(program(name, is_right=is_right), "check --format dot").out
        assert picture.startswith("digraph")
        assert "the derivative is wrong" in picture
        # In the key in any case.
        assert (picture.count("#c2185b") > 1) is not is_right


SCALED = """\
net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0 ** {scale})
with torch.autocast("cpu", dtype=torch.float16):
    loss = (net(torch.randn(32, 8)) - torch.randn(32, 1)).pow(2).mean()
scaler.scale(loss).backward()
"""


@pytest.mark.parametrize(("scale", "expected"), [(40, {"not checked"}), (4, {"right", "rounding"})])
def test_what_a_scaler_lets_overflow_is_not_wrong(
    session: Session, scale: int, expected: set[str]
) -> None:
    """It leaves such a step out; without it, the gradient is lost."""
    program = HEAD + SCALED.format(scale=scale)
    _, checks = checked(session, program)
    assert {one.verdict for one in checks.leaves} <= expected
    if scale == 40:
        assert {one.analytic for one in checks.leaves} <= {"NaN", "Infinity", "-Infinity"}
        done = session.cli("check", "program.py")
        assert done.status == 0
        assert done.out.count("as is expected of the first scales") == 1
        by_hand = program.replace(
            "scaler.scale(loss).backward()", f"(loss * 2.0 ** {scale}).backward()"
        )
        _, lost = checked(session, by_hand)
        assert {one.verdict for one in lost.leaves} == {"wrong"}
