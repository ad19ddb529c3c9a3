"""Networks of torch alone, over words, series and sets."""

from __future__ import annotations

PROGRAMS = {
    "WaveNet": """
first, last = nn.Conv1d(1, 6, 1), nn.Conv1d(6, 8, 1)
gates = [nn.Conv1d(6, 12, 2, dilation=2 ** k) for k in range(4)]
mixers = [nn.Conv1d(6, 6, 1) for _ in gates]
x, skips = first(torch.randn(2, 1, 32)), 0
for gate, mix in zip(gates, mixers):
    filtered, opened = gate(nn.functional.pad(x, (gate.dilation[0], 0))).chunk(2, 1)
    out = mix(filtered.tanh() * opened.sigmoid())
    x, skips = x + out, skips + out
loss = nn.functional.cross_entropy(last(skips.relu()), torch.randint(8, (2, 32)))
""",
    "language model of two-way LSTMs": """
embed = nn.Embedding(20, 6, padding_idx=0)
lstm = nn.LSTM(6, 5, num_layers=2, bidirectional=True, dropout=0.2, batch_first=True)
head = nn.Linear(10, 20)
words = torch.randint(20, (3, 7))
out, _ = lstm(embed(words))
loss = nn.functional.cross_entropy(head(out).flatten(0, 1), words.flatten(), ignore_index=0)
""",
    "transformer, encoder and decoder": """
net = nn.Transformer(8, 2, 1, 2, 16, dropout=0.1, batch_first=True)
source, target = torch.randn(2, 6, 8), torch.randn(2, 4, 8)
causal = nn.Transformer.generate_square_subsequent_mask(4)
loss = (net(source, target, tgt_mask=causal) - target).pow(2).mean()
""",
    "translation with additive attention": """
encoder, decoder = nn.GRU(4, 6, batch_first=True, bidirectional=True), nn.GRUCell(16, 6)
left, right, score, head = nn.Linear(12, 6), nn.Linear(6, 6), nn.Linear(6, 1), nn.Linear(6, 5)
states, h = encoder(torch.randn(2, 7, 4))
h, loss = h.mean(0), 0
targets = torch.randint(5, (3, 2))
for target in targets:
    weights = score(torch.tanh(left(states) + right(h).unsqueeze(1))).softmax(1)
    context = (weights * states).sum(1)
    h = decoder(torch.cat([context, nn.functional.one_hot(target, 4 + 1).float()[:, :4]], 1), h)
    loss = loss + nn.functional.cross_entropy(head(h), target)
""",
    "mixture of experts": """
router = nn.Linear(4, 3)
experts = nn.ModuleList(
    nn.Sequential(nn.Linear(4, 8), nn.SiLU(), nn.Linear(8, 4)) for _ in range(3)
)
x = torch.randn(10, 4)
probabilities = router(x).softmax(-1)
weights, chosen = probabilities.topk(2, -1)
weights = weights / weights.sum(-1, keepdim=True)
out = torch.zeros_like(x)
for number, expert in enumerate(experts):
    rows, slot = (chosen == number).nonzero(as_tuple=True)
    out = out.index_add(0, rows, expert(x[rows]) * weights[rows, slot, None])
load = nn.functional.one_hot(chosen, 3).float().mean((0, 1))
loss = out.square().mean() + 3 * (load * probabilities.mean(0)).sum()
""",
    "recommender of embedding bags": """
users, bags, head = nn.Embedding(9, 4), nn.EmbeddingBag(20, 4, mode="sum"), nn.Bilinear(4, 4, 1)
items, starts = torch.randint(20, (8,)), torch.tensor([0, 3, 4])
bag = bags(items, starts, per_sample_weights=torch.rand(8))
scores = head(users(torch.tensor([1, 1, 5])), bag).squeeze(1)
loss = nn.functional.margin_ranking_loss(scores[:2], scores[1:], torch.ones(2), margin=1.0)
""",
    "adaptive softmax": """
net, head = nn.Linear(6, 8), nn.AdaptiveLogSoftmaxWithLoss(8, 30, [5, 12])
loss = head(net(torch.randn(12, 6)).relu(), torch.randint(30, (12,))).loss
""",
    "sets, by sums and maxima": """
each, whole = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 4)), nn.Linear(8, 1)
points, owner = torch.randn(9, 3), torch.tensor([0, 0, 0, 0, 1, 1, 2, 2, 2])
h = each(points)
index = owner[:, None].expand(-1, 4)
total = torch.zeros(3, 4).scatter_add(0, index, h)
most = torch.zeros(3, 4).scatter_reduce(0, index, h, "amax", include_self=False)
loss = whole(torch.cat([total, most], 1)).exp().mean()
""",
    "state space": """
decay, into, out = nn.Parameter(torch.randn(4)), nn.Linear(2, 4), nn.Linear(4, 1)
step = nn.Linear(2, 4)
x = torch.randn(3, 8, 2)
width = nn.functional.softplus(step(x))
kept = torch.exp(-width * decay.exp())
state, states = torch.zeros(3, 4), []
for moment in range(8):
    state = kept[:, moment] * state + width[:, moment] * into(x)[:, moment]
    states.append(state)
loss = out(torch.stack(states, 1)).square().mean() + width.cumsum(1).mean()
""",
}
