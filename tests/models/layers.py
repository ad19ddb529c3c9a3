"""Networks of torch alone: what ``torch.nn`` has, put together as its users do."""

from __future__ import annotations

PROGRAMS = {
    "multilayer perceptron": """
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Sequential(
    nn.Linear(8, 16), nn.LayerNorm(16), nn.GELU(), nn.Dropout(0.2), nn.Linear(16, 16), nn.SELU(),
    nn.AlphaDropout(0.1), nn.Linear(16, 3),
)
loss = nn.functional.cross_entropy(net(torch.randn(6, 8)), torch.randint(3, (6,)))
""",
    "LeNet": """
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Sequential(
    nn.Conv2d(1, 6, 5, padding=2), nn.Tanh(), nn.AvgPool2d(2), nn.Conv2d(6, 8, 5), nn.Tanh(),
    nn.AvgPool2d(2), nn.Flatten(), nn.Linear(8, 12), nn.Tanh(), nn.Linear(12, 10),
)
out = net(torch.randn(3, 1, 12, 12))
loss = nn.functional.nll_loss(out.log_softmax(1), torch.tensor([1, 2, 0]))
""",
    "residual network": """
import torch
from torch import nn
torch.manual_seed(0)
class Block(nn.Module):
    def __init__(self, inside, outside, stride):
        super().__init__()
        self.first = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.norm1, self.norm2 = nn.BatchNorm2d(outside), nn.BatchNorm2d(outside)
        self.second = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.shortcut = nn.Identity() if stride == 1 else nn.Conv2d(inside, outside, 1, stride)
        self.relu = nn.ReLU(inplace=True)
    def forward(self, x):
        out = self.norm2(self.second(self.relu(self.norm1(self.first(x)))))
        out += self.shortcut(x)
        return self.relu(out)
net = nn.Sequential(
    nn.Conv2d(3, 4, 3), nn.MaxPool2d(2), Block(4, 4, 1), Block(4, 8, 2), Block(8, 8, 1),
    nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5),
)
loss = nn.CrossEntropyLoss(label_smoothing=0.1)(net(torch.randn(4, 3, 16, 16)), torch.arange(4))
""",
    "densely connected network": """
import torch
from torch import nn
torch.manual_seed(0)
layers = nn.ModuleList(
    nn.Sequential(nn.BatchNorm2d(3 + 4 * k), nn.ReLU(), nn.Conv2d(3 + 4 * k, 4, 3, padding=1))
    for k in range(4)
)
head = nn.Linear(19, 2)
found = [torch.randn(2, 3, 8, 8)]
for layer in layers:
    found.append(layer(torch.cat(found, 1)))
loss = head(torch.cat(found, 1).mean((2, 3))).logsumexp(1).sum()
""",
    "U-Net": """
import torch
from torch import nn
torch.manual_seed(0)
def block(inside, outside):
    return nn.Sequential(
        nn.Conv2d(inside, outside, 3, padding=1), nn.InstanceNorm2d(outside, affine=True),
        nn.LeakyReLU(0.2),
    )
class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.ModuleList([block(1, 4), block(4, 8)])
        self.bottom, self.last = block(8, 16), nn.Conv2d(4, 2, 1)
        self.up = nn.ModuleList([nn.ConvTranspose2d(16, 8, 2, 2), nn.ConvTranspose2d(8, 4, 2, 2)])
        self.merge = nn.ModuleList([block(16, 8), block(8, 4)])
    def forward(self, x):
        kept = []
        for down in self.down:
            kept.append(x := down(x))
            x = nn.functional.max_pool2d(x, 2)
        x = self.bottom(x)
        for up, merge in zip(self.up, self.merge):
            x = merge(torch.cat([up(x), kept.pop()], 1))
        return self.last(x)
loss = nn.functional.cross_entropy(UNet()(torch.randn(2, 1, 16, 16)), torch.randint(2, (2, 16, 16)))
""",
    "WaveNet": """
import torch
from torch import nn
torch.manual_seed(0)
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
    "MobileNet": """
import torch
from torch import nn
torch.manual_seed(0)
class Inverted(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.wide = nn.Conv2d(width, 4 * width, 1)
        self.each = nn.Conv2d(4 * width, 4 * width, 3, padding=1, groups=4 * width)
        self.squeeze, self.narrow = nn.Linear(4 * width, 4 * width), nn.Conv2d(4 * width, width, 1)
    def forward(self, x):
        h = nn.functional.hardswish(self.each(nn.functional.relu6(self.wide(x))))
        scale = nn.functional.hardsigmoid(self.squeeze(h.mean((2, 3))))
        return x + self.narrow(h * scale[..., None, None])
net = nn.Sequential(nn.Conv2d(3, 4, 3, 2), Inverted(4), nn.GroupNorm(2, 4), Inverted(4))
loss = nn.functional.smooth_l1_loss(net(torch.randn(2, 3, 12, 12)), torch.ones(2, 4, 5, 5))
""",
    "video network of three dimensions": """
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Sequential(
    nn.Conv3d(1, 3, 3, padding=1), nn.BatchNorm3d(3), nn.ELU(), nn.MaxPool3d(2), nn.Dropout3d(0.3),
    nn.Conv3d(3, 4, 2), nn.AdaptiveMaxPool3d(1), nn.Flatten(), nn.Linear(4, 2),
)
loss = nn.MultiMarginLoss()(net(torch.randn(3, 1, 6, 6, 6)), torch.tensor([0, 1, 1]))
""",
    "autoencoder that undoes pooling": """
import torch
from torch import nn
torch.manual_seed(0)
encode, pool = nn.Conv2d(1, 4, 3, padding=1), nn.MaxPool2d(2, return_indices=True)
unpool, decode = nn.MaxUnpool2d(2), nn.ConvTranspose2d(4, 1, 3, padding=1)
images = torch.rand(2, 1, 8, 8)
small, indices = pool(encode(images).relu())
loss = nn.functional.binary_cross_entropy_with_logits(decode(unpool(small, indices)), images)
""",
    "language model of two-way LSTMs": """
import torch
from torch import nn
torch.manual_seed(0)
embed = nn.Embedding(20, 6, padding_idx=0)
lstm = nn.LSTM(6, 5, num_layers=2, bidirectional=True, dropout=0.2, batch_first=True)
head = nn.Linear(10, 20)
words = torch.randint(20, (3, 7))
out, _ = lstm(embed(words))
loss = nn.functional.cross_entropy(head(out).flatten(0, 1), words.flatten(), ignore_index=0)
""",
    "GRU with packing": """
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
torch.manual_seed(0)
gru, head = nn.GRU(4, 6, batch_first=True), nn.Linear(6, 1)
packed = pack_padded_sequence(torch.randn(3, 5, 4), torch.tensor([5, 3, 2]), batch_first=True)
out, last = gru(packed)
padded, lengths = pad_packed_sequence(out, batch_first=True)
loss = head(padded).squeeze(-1).square().sum() / lengths.sum() + last.abs().mean()
""",
    "loop over an LSTM cell": """
import torch
from torch import nn
torch.manual_seed(0)
cell, head = nn.LSTMCell(3, 5), nn.Linear(5, 3)
h, c, loss = torch.zeros(2, 5), torch.zeros(2, 5), 0
x = torch.randn(2, 3)
for step in range(6):
    h, c = cell(x, (h, c))
    x = head(h)
    loss = loss + (x - step).square().mean()
""",
    "LSTM with projections, and a plain RNN": """
import torch
from torch import nn
torch.manual_seed(0)
lstm, rnn = nn.LSTM(4, 8, proj_size=3), nn.RNN(3, 5, nonlinearity="relu")
out, (h, c) = lstm(torch.randn(6, 2, 4))
more, _ = rnn(out, torch.randn(1, 2, 5))
loss = more.mean() + h.square().sum() + c.abs().sum()
""",
    "transformer encoder": """
import torch
from torch import nn
torch.manual_seed(0)
layer = nn.TransformerEncoderLayer(8, 2, 16, activation="gelu", batch_first=True, norm_first=True)
net, head = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Linear(8, 3)
mask = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
out = net(torch.randn(2, 5, 8), src_key_padding_mask=mask)
loss = nn.functional.cross_entropy(head(out[:, 0]), torch.tensor([0, 2]))
""",
    "transformer, encoder and decoder": """
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Transformer(8, 2, 1, 2, 16, dropout=0.1, batch_first=True)
source, target = torch.randn(2, 6, 8), torch.randn(2, 4, 8)
causal = nn.Transformer.generate_square_subsequent_mask(4)
loss = (net(source, target, tgt_mask=causal) - target).pow(2).mean()
""",
    "attention, with tied weights": """
import torch
from torch import nn
torch.manual_seed(0)
class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.mix = heads, nn.Linear(width, 3 * width, bias=False)
        self.norm, self.out = nn.RMSNorm(width), nn.Linear(width, width)
    def forward(self, x):
        parts = self.mix(self.norm(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        seen = nn.functional.scaled_dot_product_attention(*parts, is_causal=True)
        return x + self.out(seen.transpose(1, 2).flatten(2))
embed, head = nn.Embedding(16, 8), nn.Linear(8, 16, bias=False)
head.weight = embed.weight
words = torch.randint(16, (2, 6))
h = nn.Sequential(Attention(8, 2), Attention(8, 4))(embed(words))
loss = nn.functional.cross_entropy(head(h)[:, :-1].reshape(-1, 16), words[:, 1:].reshape(-1))
""",
    "rotary positions by complex numbers": """
import torch
from torch import nn
torch.manual_seed(0)
query, key = nn.Linear(8, 8), nn.Linear(8, 8)
angles = torch.outer(torch.arange(5.0), 0.1 ** torch.arange(4.0))
turns = torch.polar(torch.ones_like(angles), angles)
def turned(x):
    pairs = torch.view_as_complex(x.unflatten(-1, (4, 2)))
    return torch.view_as_real(pairs * turns).flatten(-2)
x = torch.randn(2, 5, 8)
scores = turned(query(x)) @ turned(key(x)).mT
loss = (scores.softmax(-1) * scores).sum()
""",
    "translation with additive attention": """
import torch
from torch import nn
torch.manual_seed(0)
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
    "vision transformer": """
import torch
from torch import nn
torch.manual_seed(0)
patches, token = nn.Conv2d(3, 8, 4, 4), nn.Parameter(torch.zeros(1, 1, 8))
places = nn.Parameter(torch.randn(1, 17, 8))
attend, norm = nn.MultiheadAttention(8, 2, batch_first=True), nn.LayerNorm(8)
head = nn.Linear(8, 4)
x = patches(torch.randn(2, 3, 16, 16)).flatten(2).transpose(1, 2)
x = torch.cat([token.expand(2, -1, -1), x], 1) + places
h = norm(x)
x = x + attend(h, h, h, need_weights=False)[0]
loss = nn.functional.cross_entropy(head(x[:, 0]), torch.tensor([1, 3]))
""",
    "MLP-Mixer": """
import torch
from torch import nn
torch.manual_seed(0)
def mixer(width):
    return nn.Sequential(nn.Linear(width, 2 * width), nn.Mish(), nn.Linear(2 * width, width))
across, along = nn.ModuleList(mixer(6) for _ in range(3)), nn.ModuleList(mixer(4) for _ in range(3))
x = torch.randn(2, 6, 4)
for first, second in zip(across, along):
    x = x + first(x.transpose(1, 2)).transpose(1, 2)
    x = x + second(nn.functional.layer_norm(x, (4,)))
loss = nn.functional.huber_loss(x.mean(1), torch.zeros(2, 4))
""",
    "mixture of experts": """
import torch
from torch import nn
torch.manual_seed(0)
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
import torch
from torch import nn
torch.manual_seed(0)
users, bags, head = nn.Embedding(9, 4), nn.EmbeddingBag(20, 4, mode="sum"), nn.Bilinear(4, 4, 1)
items, starts = torch.randint(20, (8,)), torch.tensor([0, 3, 4])
bag = bags(items, starts, per_sample_weights=torch.rand(8))
scores = head(users(torch.tensor([1, 1, 5])), bag).squeeze(1)
loss = nn.functional.margin_ranking_loss(scores[:2], scores[1:], torch.ones(2), margin=1.0)
""",
    "adaptive softmax": """
import torch
from torch import nn
torch.manual_seed(0)
net, head = nn.Linear(6, 8), nn.AdaptiveLogSoftmaxWithLoss(8, 30, [5, 12])
loss = head(net(torch.randn(12, 6)).relu(), torch.randint(30, (12,))).loss
""",
    "spatial transformer": """
import torch
from torch import nn
torch.manual_seed(0)
locate = nn.Sequential(nn.Flatten(), nn.Linear(64, 8), nn.ReLU(), nn.Linear(8, 6))
images = torch.rand(2, 1, 8, 8, requires_grad=True)
grid = nn.functional.affine_grid(locate(images).view(2, 2, 3), images.shape, align_corners=False)
seen = nn.functional.grid_sample(images, grid, align_corners=False, padding_mode="border")
loss = nn.functional.interpolate(seen, scale_factor=2, mode="bicubic").square().mean()
""",
    "graph convolution over a sparse matrix": """
import torch
from torch import nn
torch.manual_seed(0)
places = torch.tensor([[0, 1, 1, 2, 3], [1, 0, 2, 3, 0]])
strengths = torch.rand(5, requires_grad=True)
first, second = nn.Linear(3, 6), nn.Linear(6, 2)
adjacency = torch.sparse_coo_tensor(places, strengths, (4, 4))
h = torch.sparse.mm(adjacency, first(torch.randn(4, 3))).relu()
out = torch.sparse.mm(adjacency, second(h))
loss = nn.functional.cross_entropy(out, torch.tensor([0, 1, 1, 0]))
""",
    "sets, by sums and maxima": """
import torch
from torch import nn
torch.manual_seed(0)
each, whole = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 4)), nn.Linear(8, 1)
points, owner = torch.randn(9, 3), torch.tensor([0, 0, 0, 0, 1, 1, 2, 2, 2])
h = each(points)
index = owner[:, None].expand(-1, 4)
total = torch.zeros(3, 4).scatter_add(0, index, h)
most = torch.zeros(3, 4).scatter_reduce(0, index, h, "amax", include_self=False)
loss = whole(torch.cat([total, most], 1)).exp().mean()
""",
    "state space": """
import torch
from torch import nn
torch.manual_seed(0)
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
    "super resolution": """
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Sequential(
    nn.Conv2d(1, 8, 3, padding=1, padding_mode="reflect"), nn.PReLU(8),
    nn.Conv2d(8, 4, 3, padding=1), nn.PixelShuffle(2),
)
small, large = torch.rand(2, 1, 6, 6), torch.rand(2, 1, 12, 12)
rough = nn.functional.interpolate(small, scale_factor=2, mode="bilinear", align_corners=True)
loss = nn.functional.l1_loss(net(small) + rough, large)
""",
    "Fourier neural operator": """
import torch
from torch import nn
torch.manual_seed(0)
lift, drop = nn.Linear(1, 4), nn.Linear(4, 1)
modes = nn.Parameter(torch.randn(4, 4, 5, dtype=torch.cfloat) / 4)
beside = nn.Conv1d(4, 4, 1)
x = lift(torch.randn(2, 16, 1)).transpose(1, 2)
spectrum = torch.fft.rfft(x)
low = torch.einsum("bik,iok->bok", spectrum[..., :5], modes)
filled = torch.cat([low, torch.zeros(2, 4, 4, dtype=torch.cfloat)], -1)
x = nn.functional.gelu(torch.fft.irfft(filled, n=16) + beside(x))
loss = drop(x.transpose(1, 2)).square().mean()
""",
    "normalising flow": """
import torch
from torch import nn
torch.manual_seed(0)
nets = nn.ModuleList(nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 4)) for _ in range(3))
z, volume = torch.randn(5, 4), 0
for net in nets:
    still, moved = z.split(2, 1)
    scale, shift = net(still).chunk(2, 1)
    scale = scale.tanh()
    z = torch.cat([moved * scale.exp() + shift, still], 1).roll(1, 1)
    volume = volume + scale.sum(1)
loss = -(torch.distributions.Normal(0, 1).log_prob(z).sum(1) + volume).mean()
""",
}
