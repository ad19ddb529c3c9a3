"""Calls that mean something else than they were written for, and those that look like them: two
programs, each of many short trainings, so that two runs of the doctor are enough."""

from __future__ import annotations

import re

from gradscope.model import storage
from tests.looking import Session

HEAD = """\
import torch, torch.nn as nn, torch.nn.functional as F
from torch.distributions import Bernoulli, Categorical, Normal
from torch.nn.utils import rnn as R
torch.manual_seed(0)

def train(net, loss, steps=3):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for _ in range(steps):
        optimizer.zero_grad()
        loss(net).backward()
        optimizer.step()

def parts(**modules):
    return nn.ModuleDict(modules)
"""

SICK = """
def reader(m):
    seq = F.relu(m.conv(torch.randn(6, 1, 8, 20))).permute(3, 0, 1, 2).reshape(20, 6, 64)
    out, _ = m.rnn(seq)
    out = out.view(6, 20, -1)  # <- GS531
    return F.cross_entropy(m.fc(out.mean(1)), torch.randint(0, 9, (6,)))
columns = nn.Conv2d(1, 8, 3, padding=1)
train(parts(conv=columns, rnn=nn.GRU(64, 10), fc=nn.Linear(10, 9)), reader)

def attention(m):
    states, _ = m.rnn(torch.randn(8, 11, 4))
    weights = F.softmax(m.score(torch.tanh(states)).squeeze(2), dim=0)  # <- GS531
    pooled = torch.bmm(weights.unsqueeze(1), states).squeeze(1)
    return F.cross_entropy(m.fc(pooled), torch.randint(0, 3, (8,)))
encoder = nn.LSTM(4, 6, batch_first=True)
train(parts(rnn=encoder, score=nn.Linear(6, 1), fc=nn.Linear(6, 3)), attention)

def windows(m):
    states, _ = m.rnn(torch.randn(32, 10, 2))  # <- GS531
    return F.mse_loss(m.fc(m.norm(states)[:, -1]), torch.randn(32, 1))
train(parts(rnn=nn.LSTM(2, 8), norm=nn.LayerNorm(8), fc=nn.Linear(8, 1)), windows)

def rows(m):
    states, _ = m.rnn(torch.randn(32, 10, 2))  # <- GS531
    return F.mse_loss(m.fc(states[-1, ...]), torch.randn(10, 1))
train(parts(rnn=nn.GRU(2, 8, batch_first=True), fc=nn.Linear(8, 1)), rows)

def classes(m):
    scores = m.b(torch.relu(m.a(torch.randn(25, 4))))
    return F.nll_loss(scores.log_softmax(0), torch.randint(0, 3, (25,)))  # <- GS531
train(parts(a=nn.Linear(4, 6), b=nn.Linear(6, 3)), classes)

def picked(m):
    p = torch.softmax(m.b(torch.relu(m.a(torch.randn(25, 4)))), 0)  # <- GS531
    return -torch.log(p[torch.arange(25), torch.randint(0, 3, (25,))]).mean()
train(parts(a=nn.Linear(4, 6), b=nn.Linear(6, 3)), picked)

def by_hand(m):
    p = torch.softmax(m.b(torch.relu(m.a(torch.randn(25, 4)))), 0)  # <- GS531
    return ((p - F.one_hot(torch.randint(0, 3, (25,)), 3)) ** 2).mean()
train(parts(a=nn.Linear(4, 6), b=nn.Linear(6, 3)), by_hand)

def dueling(m):
    h = m.a(torch.randn(12, 4))
    adv = m.b(h)
    q = m.c(h) + (adv - adv.mean())  # <- GS531
    return F.smooth_l1_loss(q.gather(1, torch.randint(0, 3, (12, 1))), torch.randn(12, 1))
train(parts(a=nn.Linear(4, 6), b=nn.Linear(6, 3), c=nn.Linear(6, 1)), dueling)

def faces(m):
    x = torch.randn(5, 3, 8, 8, requires_grad=True)
    score = m(x)
    g, = torch.autograd.grad(score, x, torch.ones_like(score), create_graph=True)
    norm = torch.sqrt(torch.sum(g ** 2, dim=1) + 1e-12)  # <- GS532
    return score.mean() + ((norm - 1.0) ** 2).mean()
train(nn.Sequential(nn.Conv2d(3, 2, 4, 2, 1), nn.Tanh(), nn.Flatten(), nn.Linear(32, 1)), faces)

def thermostat(m):
    h = torch.tanh(m.body(torch.randn(20, 3)))
    policy = Normal(m.mu(h).squeeze(-1), 1.0)
    action = policy.sample()
    adv = -action.square() - m.value(h).squeeze(-1)
    return adv.pow(2).mean() - (policy.log_prob(action) * adv).mean()  # <- GS533
train(parts(body=nn.Linear(3, 6), mu=nn.Linear(6, 1), value=nn.Linear(6, 1)), thermostat)

def codes(m):
    z = m.conv(torch.rand(4, 1, 8, 8)).permute(0, 2, 3, 1).contiguous()
    q = m.codes(torch.cdist(z.view(-1, 8), m.codes.weight).argmin(1)).view(z.shape)
    q = z + (q - z).detach()
    return q.mean() + torch.mean((q - z.detach()) ** 2)  # <- GS534
train(parts(conv=nn.Conv2d(1, 8, 2, 2), codes=nn.Embedding(16, 8)), codes)

def beats(m):
    n = torch.tensor([19, 12, 7, 5])
    packed = R.pack_padded_sequence(R.pad_sequence([torch.randn(int(k), 2) for k in n]), n)
    out, _ = R.pad_packed_sequence(m.rnn(packed)[0])
    return m.fc(out[-1]).pow(2).mean()  # <- GS535
train(parts(rnn=nn.GRU(2, 6), fc=nn.Linear(6, 1)), beats)

def classes_from_0(m):
    return m.label(torch.arange(8) % 4).pow(2).mean()
labels = nn.Embedding(4, 6, padding_idx=0)  # <- GS535
nn.init.normal_(labels.weight)
train(parts(label=labels), classes_from_0)

class GraphConv(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.empty(6, 3)  # <- GS331
        nn.init.kaiming_uniform_(self.weight)
        self.bias = nn.Parameter(torch.zeros(3))
    def forward(self, x):
        return x @ self.weight + self.bias
train(GraphConv(), lambda m: m(torch.randn(7, 6)).pow(2).mean())

regressor = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.2), nn.Linear(8, 1))
train(regressor, lambda m: m(torch.randn(6, 4)).pow(2).mean())
regressor.eval()  # <- GS538
with torch.no_grad():
    regressor(torch.randn(6, 4))
train(regressor, lambda m: m(torch.randn(6, 4)).pow(2).mean())

class Drops(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(4, 12), nn.Linear(4, 1)
    def forward(self, x):
        q, k, v = self.qkv(x).unsqueeze(0).chunk(3, -1)
        h = F.scaled_dot_product_attention(q, k, v, dropout_p=0.1).squeeze(0)  # <- GS539
        return self.out(F.dropout(h, p=0.2))  # <- GS539
drops = Drops()
train(drops, lambda m: m(torch.randn(6, 4)).pow(2).mean(), 30)
drops.eval()
with torch.no_grad():
    drops(torch.randn(6, 4))
def episodes(m):
    s, a, reward, s_next, over = replay()
    terminals = torch.as_tensor(over)
    terminals = terminals.float()
    value = m.q(s_next).max(1).values.detach()
    goal = reward + 0.8 * value  # <- GS558
    return F.mse_loss(m.q(s).gather(1, a), goal[:, None])
def replay():
    x = torch.randn(2, 12, 4)
    return x[0], torch.randint(0, 2, (12, 1)), torch.randn(12), x[1], [True, False] * 6
train(parts(q=nn.Linear(4, 2)), episodes)

class Pooled(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.out = nn.Embedding(9, 8), nn.Linear(8, 1)
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
    def forward(self, ids, padding_mask):
        return self.out(self.encoder(self.embed(ids)).mean(1))  # <- GS558
reviews = torch.tensor([[3, 4, 5, 6], [7, 8, 0, 0]])
train(Pooled(), lambda m: m(reviews, reviews == 0).pow(2).mean())

def looked_up(weight, ids, padding_idx=None):
    return weight[ids]  # <- GS558
def topics(m):
    found = looked_up(m.words.weight, torch.tensor([[3, 4, 0, 0], [5, 6, 7, 0]]), padding_idx=0)
    return found.sum(1).pow(2).mean()
def spoken_loss(scores, targets, ignore_index):
    return F.cross_entropy(scores, targets)  # <- GS558
train(parts(words=nn.Embedding(9, 4)), topics)
train(nn.Linear(4, 3), lambda m: spoken_loss(m(torch.randn(4, 4)), torch.tensor([1, 2, 0, 0]), 0))

kept = parts(base=nn.Linear(4, 4), head=nn.Linear(4, 1))
kept.base.trainable = False  # <- GS332
train(kept, lambda m: m.head(m.base(torch.randn(8, 4))).pow(2).mean())

class Focal(nn.Module):
    def forward(self, scores, classes):
        loss = nn.CrossEntropyLoss()(scores, classes)  # <- GS560
        focus = (1 - torch.exp(-loss)) ** 2
        return (0.25 * focus * loss).mean()
def cells(m, after=1.0):
    scores = m.conv(torch.randn(4, 1, 8, 8) * 3)
    wanted = (torch.rand(4, 1, 8, 8) > 0.6).float()
    p, t = scores.reshape(4, -1), wanted.reshape(4, -1)
    both = torch.sum(p * t, dim=1)  # <- GS560
    return 1 - ((2 * both + after) / (p.pow(2).sum(1) + t.sum(1) + after)).mean()
def phonemes(m):
    log_probs = m.out(torch.randn(9, 2, 4)).log_softmax(-1)
    spoken = torch.tensor([[0, 2, 3], [1, 4, 0]])
    return F.ctc_loss(log_probs, spoken, (9, 9), (3, 2))  # <- GS560
train(nn.Linear(4, 3), lambda m: Focal()(m(torch.randn(8, 4)), torch.randint(0, 3, (8,))))
train(parts(conv=nn.Conv2d(1, 1, 3, padding=1)), cells)
train(parts(out=nn.Linear(4, 5)), phonemes)

def words():
    ids = torch.randint(1, 40, (6, 12))
    ids[0, 8:] = 0
    return ids
def reader_loss(scores, labels):
    return F.cross_entropy(scores[:, :-1].flatten(0, 1), labels[:, 1:].flatten())  # <- GS559
def twice(m):
    batch = words()
    inputs, labels = batch[:, :-1], batch[:, 1:]
    return reader_loss(m.out(m.rnn(m.embed(inputs))[0]), labels)
def ahead(m):
    ids = words().t()
    scores = m.out(m.rnn(m.embed(ids))[0])  # <- GS559
    return F.nll_loss(scores[:-1].log_softmax(-1).view(-1, 40), ids[1:].reshape(-1))
def whole(m):
    ids = words()
    h = m.embed(ids)
    late = torch.zeros(6, 1, 12).masked_fill(ids[:, None] == 0, -1e9)
    h = h + (h @ h.mT + late).softmax(-1) @ h  # <- GS559
    return F.cross_entropy(m.out(h)[:, :-1].mT, ids[:, 1:], ignore_index=0)
tokens, out = nn.Embedding(40, 8), nn.Linear(8, 40)
train(parts(embed=tokens, rnn=nn.GRU(8, 8, batch_first=True), out=out), twice)
train(parts(embed=tokens, rnn=nn.LSTM(8, 4, bidirectional=True), out=out), ahead)
train(parts(embed=tokens, out=out), whole)
"""

HEALTHY = """
def shifted(m):  # of a relative attention: the view turns positions, not samples
    p = m.q(torch.randn(7, 6, 8)) @ torch.randn(8, 6)
    p = torch.cat([torch.zeros(7, 6, 1), p], -1).view(7, 7, 6)[:, 1:]
    return p.softmax(-1).pow(2).mean()
train(parts(q=nn.Linear(8, 8)), shifted)

def ghost(m):  # batch norm of parts of a batch, pairs of views, and a contrast over the batch
    x = m.conv(torch.randn(16, 3, 6, 6))
    x = F.batch_norm(x.view(-1, 16, 4, 4), None, None, training=True).view(16, 4, 4, 4)
    z = F.normalize(m.fc(x.flatten(1)), dim=1).view(2, 8, 5)
    sim = z[0] @ z[1].t()
    return -(sim.log_softmax(0).diag().mean() + sim.log_softmax(1).diag().mean())
train(parts(conv=nn.Conv2d(3, 4, 3), fc=nn.Linear(64, 5)), ghost)

def bag(m):  # the rows are one sample: what is spread over them is summed over them
    h = m.f(torch.randn(5, 6)).relu()
    weights = m.a(h).softmax(0)
    slots = weights.T @ h
    mask = (torch.rand(5, 3) > 0.2).float()
    spread = (weights * (weights + 1e-8).log() * mask).sum() + weights[torch.tensor([0, 3])].sum()
    target = torch.tensor([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0], [0, 0, 0]])
    spread = spread + ((weights - target) ** 2).mean()
    pooled = spread + (weights[:, :1] * h).sum(0) + (m.a(h).softmax(1) @ slots).sum(dim=0)
    return pooled.pow(2).mean()
train(parts(f=nn.Linear(6, 8), a=nn.Linear(8, 3)), bag)

def normed(m):  # by mean and spread of all, in three ways; and a correlation
    h = m.a(torch.randn(16, 5))
    h = (h - h.mean()) / (h.std() + 1e-5)
    spread = h.std()
    y = m.b((h - h.mean()) / spread)
    c = y - y.mean()
    c = c / c.pow(2).mean().sqrt()
    return F.mse_loss(c, torch.randn(16, 3)) + (y - y.mean()).prod()
train(parts(a=nn.Linear(5, 7), b=nn.Linear(7, 3)), normed)

def field(m):  # a norm of 1 at each point; the whole of a sample's gradient; a penalty on squares
    x = torch.randn(4, 10, 3, requires_grad=True)
    y = m.f(x)
    g, = torch.autograd.grad(y, x, torch.ones_like(y), create_graph=True)
    s = torch.randn(6, 2, 8, requires_grad=True)
    score = m.c(s.flatten(1))
    d, = torch.autograd.grad(score, s, torch.ones_like(score), create_graph=True)
    whole = (d.reshape(6, -1).norm(2, dim=1) - 1).pow(2) + (d.norm(2, dim=(1, 2)) - 1).pow(2)
    return (g.norm(dim=-1) - 1).pow(2).mean() + whole.mean() + d.pow(2).sum(1).mean()
surface = nn.Sequential(nn.Linear(3, 4), nn.Softplus(), nn.Linear(4, 1))
train(parts(f=surface, c=nn.Sequential(nn.Linear(16, 4), nn.Tanh(), nn.Linear(4, 1))), field)

def latents(m):  # an expectation over all values, and data that are no sample
    x = torch.randn(12, 5)
    choice = Categorical(logits=m.enc(x))
    score = Normal(m.dec.weight[None], 1.0).log_prob(x[:, None]).sum(-1)
    taught = m.w(x).sigmoid().squeeze(1) * choice.log_prob(torch.randint(0, 4, (12,)))
    action = choice.sample()
    policy = choice.log_prob(action) * (action == 2).float() + m.w.bias * choice.log_prob(action)
    return -((choice.probs * score).sum(-1) + taught + policy).mean()
train(parts(enc=nn.Linear(5, 4), dec=nn.Embedding(4, 5), w=nn.Linear(5, 1)), latents)

actor, critic = nn.Linear(4, 3), nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
a, c = torch.optim.Adam(actor.parameters()), torch.optim.Adam(critic.parameters())
for _ in range(3):  # what the critic gets of the actor's loss is cleared before its step
    state = torch.randn(16, 4)
    choice = Categorical(logits=actor(state))
    action = choice.sample()
    value, reward = critic(state).squeeze(1), (action == 1).float()
    a.zero_grad()
    (-choice.log_prob(action) * (reward - value)).mean().backward(retain_graph=True)
    a.step()
    c.zero_grad()
    (reward - value).pow(2).mean().backward()
    c.step()

def looked_up(weight, ids, padding_idx=None):  # none is given; handed on; not among them
    return weight[ids]
def handed_on(weight, ids, padding_idx):
    return F.embedding(ids, weight, padding_idx)
def masked(weight, ids, pad_id):
    return weight[ids] * (ids != pad_id)[..., None]
def scored(scores, targets, ignore_index=-100):
    return F.cross_entropy(scores, targets)
def topics(m):
    ids, w = torch.tensor([[3, 4, 0, 0], [5, 6, 7, 0]]), m.words.weight
    found = looked_up(w, ids) + handed_on(w, ids, 0) + masked(w, ids, 0) + looked_up(w, ids, 8)
    return scored(found.sum(1), torch.tensor([0, 1]))
train(parts(words=nn.Embedding(9, 4)), topics)

kept = parts(base=nn.Linear(4, 4), head=nn.Linear(4, 1))
kept.base.trainable = False  # what it means, the program says
kept.base.lazy = False
for part in kept.children():
    part.name = getattr(part, "trainable", True)
train(kept, lambda m: m.head(m.base(torch.randn(8, 4))).pow(2).mean())

def straight(m):
    z = m.e(torch.randn(10, 6))
    q = m.codes(torch.cdist(z, m.codes.weight).argmin(1))
    s = z + (q - z).detach()
    r = z + (z.round() - z).detach()
    t = q.detach() + z - z.detach()
    pull = F.mse_loss(q, z.detach()) + F.mse_loss(s.detach(), z) + (s.detach() - z).pow(2).mean()
    return m.d(s + r + t).pow(2).mean() + pull
train(parts(e=nn.Linear(6, 4), codes=nn.Embedding(9, 4), d=nn.Linear(4, 6)), straight)

def ends(m):
    n = torch.tensor([9, 8, 6, 5, 5, 4])
    xs = R.pad_sequence([torch.randn(int(k), 3) for k in n], True)
    out, (h, _) = m.rnn(R.pack_padded_sequence(xs, n, True))
    out, lengths = R.pad_packed_sequence(out, True)
    taken = out[torch.arange(6), lengths - 1] + out[:, 0] + out[:, 4]
    state = torch.cat([h[0], h[1]], 1) + h.transpose(0, 1).reshape(6, 8)
    same = h.view(1, 2, 6, 4)[0].mT.sum()
    words = m.words(torch.tensor([[1, 0]] * 3)).view(6, 8)
    unknown = m.user(torch.tensor([0, 1, 2, 0, 3, 4]))
    return (taken + state + same + words + unknown).pow(2).mean()
words = nn.Embedding(8, 8, padding_idx=0)
nn.init.normal_(words.weight)
both = nn.LSTM(3, 4, batch_first=True, bidirectional=True)
train(parts(rnn=both, user=nn.Embedding(8, 8, padding_idx=0), words=words), ends)

def last(m):  # the last step of both layouts, and of a batch of one; the last state and feature
    early, late = m.early(torch.randn(7, 5, 3))[0], m.late(torch.randn(5, 7, 3))
    one = m.early(torch.randn(7, 1, 3))[0][:, -1]
    taken = early[-1] + late[0][:, -1, :] + late[1][-1] + m.late(torch.randn(7, 3))[0][-1]
    some = early[torch.tensor([1, 2]).numpy()].sum()  # an array is no single position
    return (taken + early[-1, ..., -1:] + late[0][..., -1].sum() + one.sum() + some).pow(2).mean()
train(parts(early=nn.GRU(3, 4), late=nn.GRU(3, 4, batch_first=True)), last)

class Constants(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("waves", torch.randn(4, 8))
        self.register_buffer("turn", nn.init.orthogonal_(torch.empty(8, 8)))
        self.shift, self.fade, self.state = torch.zeros(8), torch.zeros(8), torch.zeros(8)
        self.gain = nn.Parameter(nn.init.xavier_uniform_(torch.empty(8, 8)))
    def forward(self, x):
        h = torch.relu(torch.cos(x @ self.waves) @ self.turn @ self.gain) + self.shift
        self.state = self.state * 0.5 + h.detach().mean(0)
        self.fade += 0.1
        return (1 - self.fade) * h + self.fade * h.tanh() * self.state
train(Constants(), lambda m: m(torch.randn(6, 4)).pow(2).mean())

class Partly(nn.Module):  # a part stays in eval mode, and history is switched off in between
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8))
        self.head = nn.Sequential(nn.Dropout(0.2), nn.Linear(8, 1))
    def forward(self, x):
        return self.head(self.body(x))
    def train(self, mode=True):
        super().train(mode)
        self.body.eval()
        return self
partly, fixed = Partly(), nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.2), nn.Linear(8, 1)).eval()
switched = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.2), nn.Linear(8, 1))
for epoch in range(3):  # in eval mode from the start; and one that is switched off and on
    for net in (partly.train(), fixed, switched.train()):
        train(net, lambda m: m(torch.randn(6, 4)).pow(2).mean())
        with torch.no_grad():
            net(torch.randn(6, 4))
        train(net, lambda m: m(torch.randn(6, 4)).pow(2).mean())
        with torch.no_grad():
            net.eval()(torch.randn(6, 4))

class Sampled(nn.Module):  # of a mode that is told, of one meant, and of none; and at a rate of 0
    def __init__(self):
        super().__init__()
        self.fc, self.drop = nn.Linear(4, 4), nn.Dropout(0.5)
    def forward(self, x):
        h = F.dropout(self.fc(x), 0.5, self.training) + F.dropout(x, 0.5, True)
        h = F.dropout(self.drop(h), 0.0) + F.dropout(h, **{"training": True})
        rate = 0.5 if self.training else 0.0
        return F.scaled_dot_product_attention(h[None], h[None], h[None], dropout_p=rate)
sampled = Sampled()
train(sampled, lambda m: m(F.dropout(torch.ones(6, 4))).pow(2).mean())
sampled.eval().drop.train()
with torch.no_grad():
    sampled(F.dropout(torch.randn(6, 4)))
"""


HEALTHY += """
def returns(m):  # only the policy is improved; a flag is asked; or the discount has it
    s, a, reward, s_next, done = replay()
    return -m.q(s).max(1).values.mean()
def asked(m, gamma=0.9):
    s, a, reward, s_next, done = replay()
    values = m.q(s_next).max(1).values.detach()
    goal = torch.stack([reward[k] + gamma * values[k] * (not done[k]) for k in range(12)])
    return F.mse_loss(m.q(s).gather(1, a), goal[:, None])
def continuing(m, gamma=0.9):
    s, a, reward, s_next, done = (*replay()[:4], torch.zeros(12))
    goal = reward + gamma * m.q(s_next).max(1).values.detach()
    return F.mse_loss(m.q(s).gather(1, a), goal[:, None])
def shaped(m):
    s, a, reward, s_next, done = replay()
    goal = reward + 0.79 * s_next.sum(1)
    return F.mse_loss(m.q(s).gather(1, a), goal[:, None])
def replay():
    x = torch.randn(2, 12, 4)
    return x[0], torch.randint(0, 2, (12, 1)), torch.randn(12), x[1], [True, False] * 6
for one in (returns, asked, continuing, shaped):
    train(parts(q=nn.Linear(4, 2)), one)

class Mixer(nn.Module):  # a mask that is for others; and one beside an attention that is causal
    def __init__(self):
        super().__init__()
        self.embed, self.out = nn.Embedding(9, 8), nn.Linear(8, 1)
    def forward(self, ids, mask=None):
        return self.out(torch.fft.fft(self.embed(ids), dim=1).real.mean(1))
class Causal(Mixer):
    def forward(self, ids, mask=None):
        h = self.embed(ids)
        scores = (h @ h.mT).masked_fill(torch.ones(4, 4).triu(1).bool(), -1e9)
        h = F.scaled_dot_product_attention(h, h, scores.softmax(-1) @ h, is_causal=True)
        return self.out(h.softmax(-1).mean(1))
def forms(m):  # probabilities, energies in a mask, losses of their own; no blank but for padding
    scores = m.conv(torch.randn(4, 1, 8, 8) * 3)
    p, t = scores.sigmoid(), (torch.rand(4, 1, 8, 8) > 0.6).float()
    dice = 2 * (p * t).sum() / (p.sum() + t.sum())
    inside = (scores.square() * t).sum() / scores.square().sum() + (scores * t).sum() / t.sum()
    each = F.binary_cross_entropy_with_logits(scores, t, reduction="none")
    focal = ((1 - torch.exp(-each)) ** 2 * each).mean()
    mean = F.binary_cross_entropy_with_logits(scores, t)
    gate = (scores.softmax(-1) * 3).sigmoid() * scores.sigmoid().softmax(-1)
    return focal + dice + inside + mean * (-mean).exp().detach() + gate.mean()
def spelled(m):
    log_probs = m.out(torch.randn(9, 2, 4)).log_softmax(-1)
    told = F.ctc_loss(log_probs, torch.tensor([1, 2, 3, 1, 4]), (9, 9), (3, 2))
    padded = torch.tensor([[1, 2, 3], [1, 4, 0]])
    return told + nn.CTCLoss()(log_probs, padded, torch.tensor([9, 9]), torch.tensor([3, 2]))
train(parts(conv=nn.Conv2d(1, 1, 3, padding=1)), forms)
train(parts(out=nn.Linear(4, 5)), spelled)

def words():
    ids = torch.randint(1, 40, (6, 12))
    ids[0, 8:] = 0
    return ids
def both(m):  # a second head for the token after the next; and one that repeats a source at once
    ids = words()
    h = m.rnn(m.embed(ids))[0]
    after = F.cross_entropy(m.more(h)[:, :-2].mT, ids[:, 2:], ignore_index=0)
    next_one = F.cross_entropy(m.out(h)[:, :-1].mT, ids[:, 1:], ignore_index=0)
    return after + next_one
def translate(m):  # the source is seen whole, and is as long as what it becomes
    source, ids = words(), words()
    s, h = m.embed(source), m.embed(ids)
    h = h + (s @ s.mT).softmax(-1) @ s
    h = h + (h @ h.mT).masked_fill(torch.ones(12, 12).triu(1).bool(), -1e9).softmax(-1) @ h
    return F.cross_entropy(m.out(h)[:, :-1].mT, ids[:, 1:])
def filled(m):  # hidden tokens are told from both sides; and labels of another kind
    ids = words()
    hidden = torch.arange(12) % 3 == 0
    h = m.embed(ids.masked_fill(hidden, 39))
    h = (h @ h.mT).softmax(-1) @ h
    told = F.cross_entropy(m.out(h).mT, ids.masked_fill(~hidden, -100))
    return told + F.cross_entropy(m.out(h).mT, (ids * 7) % 40)
def prefixed(m):  # a prompt that is seen whole, and of which nothing is asked
    ids = words()
    h, mask = m.embed(ids), torch.ones(12, 12).triu(1).bool()
    mask[:8, :8] = False
    h = h + (h @ h.mT).masked_fill(mask, -1e9).softmax(-1) @ h
    asked = ids.masked_fill(torch.arange(12) < 8, -100)
    return F.cross_entropy(m.out(h)[:, :-1].mT, asked[:, 1:])
def directions(m):  # each half tells what it has not seen
    ids = words()
    onwards, back = m.two(m.embed(ids))[0].chunk(2, -1)
    before = F.cross_entropy(m.out(back)[:, 1:].mT, ids[:, :-1], ignore_index=0)
    return F.cross_entropy(m.out(onwards)[:, :-1].mT, ids[:, 1:], ignore_index=0) + before
tokens, out, rnn = nn.Embedding(40, 8), nn.Linear(8, 40), nn.GRU(8, 8, batch_first=True)
two = nn.GRU(8, 8, batch_first=True, bidirectional=True)
for one in (both, translate, filled, prefixed, directions):
    train(parts(embed=tokens, rnn=rnn, out=out, more=nn.Linear(8, 40), two=two), one)

for net in (Mixer(), Causal()):
    reviews = torch.tensor([[3, 4, 5, 6], [7, 8, 0, 0]])
    train(net, lambda m: m(reviews, reviews == 0).pow(2).mean())
"""


def told(session: Session, text: str) -> list[tuple[str, int]]:
    """The rules of all warnings about a program, with their lines."""
    path, saved = session.write(HEAD + text), session.folder / "report.json"
    session.cli("doctor", str(path), "-q", "--steps", "all", "-o", str(saved))
    found = storage.load(saved).findings
    return [(f.rule, f.location.line) for f in found if f.location and f.severity != "information"]


def are_told_at_their_lines(session: Session, text: str) -> None:
    """Each line that is marked with a rule is told by it, and nothing else is."""
    lines = enumerate((HEAD + text).splitlines(), 1)
    marked = [(rule[1], number) for number, one in lines if (rule := re.search(r"<- (\w+)", one))]
    assert sorted(told(session, text)) == sorted(marked)


def test_each_is_told_at_its_line(session: Session) -> None:
    are_told_at_their_lines(session, SICK)


def test_what_only_looks_like_them_is_left_alone(session: Session) -> None:
    assert told(session, HEALTHY) == []
