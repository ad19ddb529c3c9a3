"""Axes, and elements along them, that are taken for others, and what only looks so; and the
arithmetic by which an axis is followed through a view."""

from __future__ import annotations

import pytest

from gradscope.analyses.doctor.axis_parts import named, regrouped
from gradscope.model import storage
from tests.looking import Session
from tests.test_oddities import HEAD, are_told_at_their_lines, told

SICK = """
from torch.utils.data import DataLoader, TensorDataset

class Attention(nn.Module):
    def __init__(self, width=16, heads=4):
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)
    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).reshape(b, t, self.heads, -1).permute(0, 2, 1, 3).chunk(3, -1)
        y = (q @ k.transpose(-2, -1)).softmax(-1) @ v
        y = y.reshape(b, t, d)  # <- GS552
        return self.out(y)

class Positions(nn.Module):
    def __init__(self, width=16, longest=30):
        super().__init__()
        code, at = torch.zeros(longest, 1, width), torch.arange(longest).unsqueeze(1).float()
        code[:, 0, 0::2], code[:, 0, 1::2] = at.sin(), at.cos()
        self.register_buffer("code", code)
    def forward(self, x):
        return x + self.code[:x.size(0)]  # <- GS553

def sentences(m):
    x = m.at(m.words(torch.randint(0, 30, (6, 10))))
    x = m.norm(m.attention(x) + x)
    return F.cross_entropy(m.fc(x.mean(1)), torch.randint(0, 3, (6,)))
blocks = parts(attention=Attention(), words=nn.Embedding(30, 16), at=Positions())
blocks.update(dict(norm=nn.LayerNorm(16), fc=nn.Linear(16, 3)))
train(blocks, sentences)

def heads(m):
    x = torch.randn(5, 6, 12)
    q, k, v = (m[one](x) for one in "qkv")
    q, v = q.view(15, -1, 4), v.view(15, -1, 4)
    k = k.view(15, -1, 4)  # <- GS552
    y = torch.bmm(F.softmax(torch.bmm(q, k.transpose(1, 2)), dim=2), v)
    return y.view(5, 6, 12).pow(2).mean()
train(parts(q=nn.Linear(12, 12), k=nn.Linear(12, 12), v=nn.Linear(12, 12)), heads)

def turned(m):  # steps first, as torch does it inside of its own attention
    x = torch.randn(7, 5, 12)
    q, k, v = (m[one](x).view(7, 15, 4).transpose(0, 1) for one in "qkv")
    a = torch.baddbmm(torch.zeros(1), q, k.mT).softmax(-1)
    y = torch.bmm(a, v).view(7, 5, -1)  # <- GS552
    return (x + y).pow(2).mean()
train(parts(q=nn.Linear(12, 12), k=nn.Linear(12, 12), v=nn.Linear(12, 12)), turned)

def tokens(m):
    x = m.patch(torch.randn(4, 3, 24, 24)).flatten(2).transpose(1, 2)
    x, _ = m.attend(x, x, x)
    image = x.reshape(4, 8, 6, 6)  # <- GS552
    return m.up(image).pow(2).mean()
attend = nn.MultiheadAttention(8, 2, batch_first=True)
train(parts(patch=nn.Conv2d(3, 8, 4, 4), attend=attend, up=nn.Conv2d(8, 3, 3)), tokens)

def pictures(m):
    x = torch.rand(10, 16, 16, 3).view(-1, 3, 16, 16)  # <- GS552
    return m(x).pow(2).mean()
train(nn.Conv2d(3, 4, 3), pictures)

def stacked(m):
    x = torch.randn(5, 9, 12)
    q = torch.stack(m.q(x).chunk(4, -1))
    y = ((q @ q.mT).softmax(-1) @ q).view(5, 9, -1)  # <- GS552
    return m.fc(y + x).pow(2).mean()
train(parts(q=nn.Linear(12, 12), fc=nn.Linear(12, 2)), stacked)

def tagger(m):
    out, _ = m.rnn(torch.randn(5, 11, 7).permute(0, 2, 1).reshape(5, 7, 11))
    scores = m.fc(out).view(5, 4, 7)  # <- GS552
    return F.cross_entropy(scores, torch.randint(0, 4, (5, 7)))
train(parts(rnn=nn.GRU(11, 6, batch_first=True), fc=nn.Linear(6, 4)), tagger)

def numbered(m):
    i = torch.randint(0, 20, (6, 9))
    x = m.words(i) + m.at(torch.arange(len(i)).unsqueeze(1))  # <- GS553
    return F.mse_loss(m.fc(x.max(1).values), torch.randn(6, 1))
train(parts(words=nn.Embedding(20, 8), at=nn.Embedding(64, 8), fc=nn.Linear(8, 1)), numbered)

batches = DataLoader(TensorDataset(torch.randn(24, 6, 3)), 8, shuffle=True)
def loaded(m):
    (x,) = next(iter(batches))
    return m.rnn(x)[0].mean(1).pow(2).mean()  # <- GS531
train(parts(rnn=nn.LSTM(3, 5)), loaded)
def encoded(m):
    return m.net(m.fc(next(iter(batches))[0]))[:, 0].pow(2).mean()  # <- GS531
layer = nn.TransformerEncoderLayer(8, 2, 16)
train(parts(net=layer, fc=nn.Linear(3, 8)), encoded)

def penalty(m, real, fake):
    share = torch.rand(real.shape)
    x = (share * real + (1 - share) * fake).requires_grad_(True)  # <- GS557
    score = m(x)
    (g,) = torch.autograd.grad(score, x, torch.ones_like(score), create_graph=True)
    return score.mean() + (g.flatten(1).norm(2, dim=1) - 1).pow(2).mean()
critic = nn.Sequential(nn.Flatten(), nn.Linear(12, 4), nn.Tanh(), nn.Linear(4, 1))
train(critic, lambda m: penalty(m, torch.randn(6, 3, 4), torch.rand(6, 3, 4)))
def perturbed(m):
    real, fake = torch.randn(6, 12), torch.randn(6, 12)
    between = real + torch.rand_like(real) * (fake - real)  # <- GS557
    x = torch.autograd.Variable(between, requires_grad=True)
    return torch.autograd.grad(m.score(x).sum(), x, create_graph=True)[0].pow(2).sum(1).mean()
class Critic(nn.Linear):
    def score(self, x):
        return (x @ self.weight).tanh().pow(2).sum(1)
train(Critic(3, 12), perturbed)

def contrast(m):
    score = -torch.cdist(m(torch.randn(8, 5)), m(torch.randn(8, 5)))
    with torch.no_grad():
        largest, _ = score.max(dim=1)
    score = score - largest.detach()  # <- GS553
    return -(score.diag() - score.exp().sum(1).log()).mean()
train(nn.Linear(5, 4), contrast)
def shares(m):
    e = (m.a(torch.randn(8, 5)) @ m.b(torch.randn(8, 5)).t()).exp()
    return -(e / (e.sum(-1) + 1e-6)).diagonal().log().mean()  # <- GS553
train(parts(a=nn.Linear(5, 4), b=nn.Linear(5, 4)), shares)
"""

HEALTHY = """
from torch.utils.data import DataLoader, TensorDataset

def shifted(m):  # a relative attention turns its rows by a view
    x = torch.randn(4, 9, 12)
    q = m.q(x).view(4, 9, 3, 4).transpose(1, 2)
    k = m.k(x).view(4, 9, 3, 4).permute(0, 2, 3, 1)
    r = F.pad(q @ m.r(torch.randn(9, 12)).view(9, 3, 4).permute(1, 2, 0), (1, 0))
    a = (q @ k + r.view(4, 3, 10, 9)[:, :, 1:]).softmax(-1)
    y = (a @ k.mT).transpose(1, 2).reshape(4, 9, 12) + x
    return F.cross_entropy(m.r(y).transpose(1, 2), torch.randint(0, 12, (4, 9)))
train(parts(q=nn.Linear(12, 12), k=nn.Linear(12, 12), r=nn.Linear(12, 12)), shifted)

def memory(m):  # with more keys than queries; the shifted rows are cut, and seen as before
    q, k = m(torch.randn(4, 7, 8)), m(torch.randn(4, 12, 8))
    r = F.pad(q @ m(torch.randn(12, 8)).T, (1, 0)).view(4, 13, 7)[:, 1:].reshape(4, 7, 12)
    return (q @ k.mT + r).softmax(-1).pow(2).mean()
train(nn.Linear(8, 8), memory)

def shuffled(m):  # channels, pixels and windows
    x = m.c(torch.randn(3, 2, 8, 8))
    x = m.d(x.view(3, 2, 3, 8, 8).transpose(1, 2).reshape(3, 6, 8, 8))
    p = F.pixel_shuffle(x, 2).permute(0, 2, 3, 1)
    w = p.view(3, 2, 8, 2, 8, 1).permute(0, 1, 3, 2, 4, 5).reshape(-1, 64, 1)
    rows = x.view(3, 4, -1).transpose(1, 2).reshape(3, 64, 4)
    groups = m.e(x.view(3, 4, 4, 16).transpose(1, 2).reshape(3, 4, 64))
    return w.pow(2).mean() + rows.pow(2).mean() + groups.pow(2).mean()
layers = dict(c=nn.Conv2d(2, 6, 3, padding=1), d=nn.Conv2d(6, 4, 3, padding=1))
train(parts(e=nn.Linear(64, 4), **layers), shuffled)

def undone(m):  # in another shape for a while, in which every element is by itself
    x = m(torch.randn(5, 7, 12))
    y = x.view(5, 12, 7).tanh().view(5, 7, 12) + x
    return (y + y.view(5, 7, 3, 4).transpose(1, 2).reshape(15, 7, 4).mean((0, 2))[:, None]).mean()
train(nn.Linear(12, 12), undone)

def video(m):  # time and space by turns; a code of time varies along what space takes for rows
    x = m.p(torch.randn(2, 5, 7, 6))
    x = x + m.t(torch.arange(5))[None, :, None]
    s = x.reshape(10, 7, 6)
    s = s + m.u(s, s, s)[0]
    t = s.view(2, 5, 7, 6).transpose(1, 2).reshape(14, 5, 6)
    t = t + m.t(torch.arange(5))
    t = x + m.u(t, t, t)[0].view(2, 7, 5, 6).transpose(1, 2)
    return F.mse_loss(m.o(t.mean((1, 2))).squeeze(1), torch.randn(2))
attend = nn.MultiheadAttention(6, 2, batch_first=True)
train(parts(p=nn.Linear(6, 6), t=nn.Embedding(5, 6), u=attend, o=nn.Linear(6, 1)), video)

def positions(m):  # in both layouts; one sentence whose words are the samples; a class of each
    i = torch.arange(9)
    x = m.words(torch.randint(0, 20, (6, 9))) + m.at(i)
    y = m.words(torch.randint(0, 20, (9, 6))) + m.at(i)[:, None]
    z = m.words(torch.randint(0, 20, (9, 3))) + m.at(i)[:, None]
    z = z + m.late(z.transpose(0, 1), z.transpose(0, 1), z.transpose(0, 1))[0].transpose(0, 1)
    one = F.cross_entropy(m.fc(z.mean(1)), torch.randint(0, 8, (9,)))
    seen = m.late(x, x, x)[0].mean(1) + m.early(y, y, y)[0].mean(0)
    return F.cross_entropy(m.fc(seen), torch.randint(0, 8, (6,))) + one * 0 + z.mean()
late, early = nn.MultiheadAttention(8, 2, batch_first=True), nn.MultiheadAttention(8, 2)
tables = dict(words=nn.Embedding(20, 8), at=nn.Embedding(64, 8))
train(parts(late=late, early=early, fc=nn.Linear(8, 8), **tables), positions)

ordered, drawn = (DataLoader(TensorDataset(torch.randn(24, 6, 3)), 8, shuffle=s) for s in (0, 1))
def loaded(m):  # steps that a loader cuts off one after another; a batch that is one sequence
    (x,), (y,) = next(iter(drawn)), next(iter(ordered))
    m.rnn(y)[0].mean().backward()
    one = m.rnn(x[:, :1])[0].mean() + m.rnn(x[:, 0])[0].mean()
    return one + m.rnn(x.transpose(0, 1))[0].mean(0).pow(2).mean() + m.late(x)[0].mean()
train(parts(rnn=nn.LSTM(3, 5), late=nn.LSTM(3, 5, batch_first=True)), loaded)

def members(m):  # each of an ensemble, of a graph, has a row of its own
    x = torch.randn(1, 10, 4).expand(5, 10, 4) + m.row.weight.view(5, 1, 4)
    y = torch.randn(5, 9, 4) + m.row(torch.arange(5))[:, None] + m.row.weight[:, None]
    y = m.late(y, y, y)[0].mean(1)
    loss = F.mse_loss(m.fc(x).squeeze(2), torch.randn(10).expand(5, 10))
    return loss + F.mse_loss(m.fc(y), torch.randn(5, 1))
late = nn.MultiheadAttention(4, 2, batch_first=True)
train(parts(row=nn.Embedding(5, 4), late=late, fc=nn.Linear(4, 1)), members)

def rotary(m):  # all words of a batch in one row, each with the code of its place
    q = m.q(torch.randn(9, 12)).view(9, 3, 4)
    q = q * torch.arange(9.0)[:, None, None].cos() + q
    y = F.scaled_dot_product_attention(*[q.transpose(0, 1)] * 3).transpose(0, 1).reshape(9, 12)
    return F.cross_entropy(m.q(y), torch.randint(0, 12, (9,)))
train(parts(q=nn.Linear(12, 12)), rotary)

def penalties(m):  # one weight a sample, noise around it, a mask; and no gradient by the mixture
    real, fake, loss = torch.randn(6, 12), torch.rand(6, 12), 0
    share, mask = torch.rand(6, 1).expand(6, 12).contiguous(), (torch.rand(6, 12) > 0.5).float()
    points = (torch.lerp(real, fake, share), real + 0.1 * torch.rand(6, 12))
    for x in (share * real + (1 - share) * fake, mask * real + (1 - mask) * fake, *points):
        x.requires_grad_(True)
        g, = torch.autograd.grad(m(x).sum(), x, create_graph=True)
        loss = loss + (g.norm(2, dim=1) - 1).pow(2).mean()
    gate = m[0](real).sigmoid().repeat(1, 3)
    return loss + m(gate * real + (1 - gate) * fake).mean()
train(nn.Sequential(nn.Linear(12, 4), nn.Tanh(), nn.Linear(4, 1)), penalties)
def equation(m):  # at points of a box
    low, high, share, loss = torch.zeros(1, 2), torch.ones(6, 2), torch.rand(6, 2), 0
    drawn = low + (high - low) * torch.rand(6, 2)
    for x in (drawn, torch.lerp(low, high, share), share * high + (1 - share) * low):
        x.requires_grad_(True)
        loss = loss + torch.autograd.grad(m(x).sum(), x, create_graph=True)[0].pow(2).mean()
    return loss
train(nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1)), equation)

def reduced(m):  # by the axis that is meant, by name, and where both are alike
    z, w = m.a(torch.randn(8, 5)), m.b(torch.randn(8, 5))
    e = (z @ w.t()).exp()
    p = e / e.sum(0) + e / e.sum(1, keepdim=True) + e / e.sum(1)[:, None] + (e.t() / e.sum(1)).t()
    near = (z @ z.t()).sigmoid()
    y = m.c(torch.randn(4, 4))
    y = (y - y.mean(0)) / y.std(0) - y.mean(1, keepdim=True)
    q = m.c(torch.randn(6, 6, 4))
    return p.mean() + (near / near.sum(1)).mean() + y.pow(2).mean() + (q / q.sum(0)).mean()
train(parts(a=nn.Linear(5, 4), b=nn.Linear(5, 4), c=nn.Linear(4, 4)), reduced)
"""

Views = list[tuple[tuple[int, ...], str]]

VIEWS: list[tuple[tuple[int, ...], Views]] = [
    # Merged and split where they were; split and merged otherwise, and back again.
    ((3, 4, 14), [((12, 14), "ab c"), ((3, 4, 14), "a b c"), ((3, 4, 2, 7), "a b ? ?")]),
    ((3, 64, 8), [((3, 64, 2, 4), "a b ? ?"), ((3, 64, 8), "a b c"), ((3, 1, 512), "a  bc")]),
    ((12, 14), [((3, 4, 14), "? ? b"), ((12, 14), "a b")]),
    # Through several at once, and at their borders: what is as long as one claims to be it.
    ((3, 2, 5, 7), [((3, 5, 14), "a =c ?")]),
    ((3, 2, 4, 7), [((3, 4, 14), "a =c ?d")]),
    ((2, 512, 7, 7), [((2, 49, 512), "a ? =b")]),
    ((2, 512, 8, 8), [((2, 64, 512), "a ? =b")]),
    ((3, 4, 14), [((6, 4, 7), "a? =b ?")]),
    # Not where it is all there, where two are as long, or where rows are shifted.
    ((2, 5, 5, 3), [((2, 3, 5, 5), "a =d ? ?"), ((2, 5, 5, 3), "a ? ? ?")]),
    ((2, 5, 4, 5), [((2, 20, 5), "a bc d"), ((2, 5, 20), "a b cd")]),
    ((4, 7, 8), [((4, 8, 7), "a ? ?")]),
    ((4, 7, 9), [((4, 9, 7), "a =c =b")]),
    ((3, 0), [((0, 3), " ?")]),
]


@pytest.mark.parametrize(("shape", "views"), VIEWS)
def test_what_an_axis_is_made_of_after_a_view(shape: tuple[int, ...], views: Views) -> None:
    axes = named(shape)
    names = {axis[0].origin: name for axis, name in zip(axes, "abcd", strict=False) if axis}
    for after, expected in views:
        axes, shape = regrouped(axes, shape, after, 0), after
        found = [
            "".join(
                "=" + names[part.claims.origin] if part.claims else names.get(part.origin, "?")
                for part in axis
            )
            for axis in axes
        ]
        assert " ".join(found) == expected


def test_each_is_told_at_its_line(session: Session) -> None:
    are_told_at_their_lines(session, SICK)


def test_what_only_looks_like_them_is_left_alone(session: Session) -> None:
    assert told(session, HEALTHY) == []


ODD = """
a = nn.Linear(4, 4)(torch.randn(3, 4, requires_grad=True))
s, empty = a.sum(), nn.Linear(4, 4)(torch.randn(0, 4))
s.softmax(0), s.view(1), s.squeeze(), empty.view(4, 0), a.max(dim=1), a[None].squeeze((0,))
torch.cat([a, torch.zeros(0)]), torch.cat(tensors=[a, a], dim=1), torch.cat([a, a], axis=-1)
torch.stack([s, s]), torch.stack(tensors=[a[0], a[1]], dim=-1), a.view(torch.int32), 1 - s
h = a.sum(1)
h.unsqueeze_(1)
(a - h + a.sum(0) + torch.rsub(a, 1, alpha=2) + torch.lerp(a, a, 0.5)).sum().backward()
"""


def test_calls_of_any_form_are_followed(session: Session) -> None:
    path, saved = session.write(HEAD + ODD), session.folder / "report.json"
    session.cli("doctor", str(path), "-q", "-o", str(saved))
    assert not [note for note in storage.load(saved).notes if "error" in note]


EPOCH = """
def epoch(module, rows, criterion=F.mse_loss):
    x, y = torch.randn(rows, 4), torch.randn(rows)
    for inputs, target in zip(x.split(8), y.split(8)):
        criterion(module(inputs), target).backward()
"""
NET = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.rnn = nn.Linear(4, 8), nn.GRU(8, 1, batch_first=True)
    def forward(self, x):
        h = torch.squeeze(self.fc(x).unsqueeze(1))
        return self.rnn(h.unsqueeze(1))[0].flatten()
"""
SQUEEZED = {
    "epoch(nn.Sequential(nn.Linear(4, 1), nn.Flatten(0)), 33)": False,
    # A loss, and the check of a layer, many steps later.
    "net = nn.Linear(4, 1)\nepoch(lambda x: net(x).squeeze(), 401, nn.BCEWithLogitsLoss())": True,
    NET + "epoch(Net(), 401)": True,
    # Never more than one; and what has its axis still, where something else fails.
    "net = nn.Linear(4, 1)\nepoch(lambda x: net(x[:1]).squeeze(), 8, lambda p, y: p @ y)": False,
    "net = nn.Linear(4, 3)\n"
    "epoch(lambda x: net(x).unsqueeze(1).squeeze(), 16, lambda p, y: p.mean())\n"
    "(net(torch.ones(5, 4)).unsqueeze(1).squeeze() @ torch.ones(4)).backward()": False,
}


@pytest.mark.parametrize(("text", "is_told"), SQUEEZED.items())
def test_the_axis_of_a_batch_of_one(session: Session, text: str, is_told: bool) -> None:
    assert ("GS554" in dict(told(session, EPOCH + text))) == is_told
