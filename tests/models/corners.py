"""Networks of torch alone that use one corner of it: other numbers, other memory, other weights."""

from __future__ import annotations

PROGRAMS = {
    "recomputed in backward": """
from torch.utils.checkpoint import checkpoint, checkpoint_sequential
blocks = nn.Sequential(
    *[nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Dropout(0.2)) for _ in range(4)]
)
x = torch.randn(3, 4, requires_grad=True)
h = checkpoint(blocks[0], x, use_reentrant=False)
loss = checkpoint_sequential(blocks, 2, h, use_reentrant=False).square().sum()
""",
    "recomputed in backward, the old way": """
from torch.utils.checkpoint import checkpoint
block = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4))
x = torch.randn(3, 4, requires_grad=True)
loss = checkpoint(block, checkpoint(block, x, use_reentrant=True), use_reentrant=True).sum()
""",
    "autocast to bfloat16": """
net = nn.Sequential(nn.Conv1d(2, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(24, 3))
with torch.autocast("cpu", torch.bfloat16):
    out = net(torch.randn(4, 2, 8))
    loss = nn.functional.cross_entropy(out, torch.tensor([0, 1, 2, 0]))
""",
    "double precision": """
net = nn.Sequential(nn.Linear(3, 6), nn.Sigmoid(), nn.Linear(6, 3)).double()
a = net(torch.randn(4, 3, dtype=torch.double))
loss = torch.linalg.slogdet(a.T @ a + torch.eye(3))[1] + torch.linalg.svdvals(a).sum()
""",
    "parametrized weights": """
from torch.nn.utils import parametrizations, parametrize
class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).mT
first = parametrizations.weight_norm(nn.Linear(4, 4))
second = parametrizations.spectral_norm(nn.Linear(4, 4))
third = parametrizations.orthogonal(nn.Linear(4, 4, bias=False))
fourth = nn.Linear(4, 4)
parametrize.register_parametrization(fourth, "weight", Symmetric())
loss = fourth(third(second(first(torch.randn(3, 4)).relu()).relu())).logsumexp(0).sum()
""",
    "complex numbers": """
first = nn.Linear(4, 6, dtype=torch.cfloat)
second = nn.Parameter(torch.randn(6, 3, dtype=torch.cfloat))
h = first(torch.randn(5, 4, dtype=torch.cfloat))
h = h * (h.abs().relu() + 1).log() / (h.abs() + 1e-3)
loss = ((h.conj() @ second).angle().square() + torch.view_as_real(h).sum((1, 2))[:, None]).mean()
""",
    "rotary positions by complex numbers": """
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
    "Fourier neural operator": """
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
    "sparse gradients of embeddings": """
words, near = nn.Embedding(30, 4, sparse=True), nn.Embedding(30, 4, sparse=True)
bags = nn.EmbeddingBag(12, 4, mode="mean", sparse=True)
center, around = torch.randint(30, (6,)), torch.randint(30, (6, 3))
scores = torch.einsum("bd,bkd->bk", words(center), near(around))
loss = -nn.functional.logsigmoid(scores).mean() + bags(torch.randint(12, (2, 5))).square().mean()
""",
    "graph convolution over a sparse matrix": """
places = torch.tensor([[0, 1, 1, 2, 3], [1, 0, 2, 3, 0]])
strengths = torch.rand(5, requires_grad=True)
first, second = nn.Linear(3, 6), nn.Linear(6, 2)
adjacency = torch.sparse_coo_tensor(places, strengths, (4, 4))
h = torch.sparse.mm(adjacency, first(torch.randn(4, 3))).relu()
out = torch.sparse.mm(adjacency, second(h))
loss = nn.functional.cross_entropy(out, torch.tensor([0, 1, 1, 0]))
""",
    "ensemble by vmap": """
from torch.func import functional_call, stack_module_state, vmap
nets = [nn.Sequential(nn.Linear(3, 6), nn.ReLU(), nn.Linear(6, 2)) for _ in range(3)]
weights, buffers = stack_module_state(nets)
def call(own, kept, x):
    return functional_call(nets[0], (own, kept), (x,))
out = vmap(call, (0, 0, None))(weights, buffers, torch.randn(5, 3))
loss = out.var(0).mean() + out.square().mean()
""",
}
