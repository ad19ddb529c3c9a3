"""Small networks of five kinds, as programs of a user: what their graphs hold must be explained."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent
EXAMPLES = FOLDER.parent / "examples"

LSTM = """
import torch
from torch import nn
torch.manual_seed(0)
net, head = nn.LSTM(3, 4, num_layers=2, batch_first=True), nn.Linear(4, 2)
cell = nn.LSTMCell(4, 4)
out, (h, c) = net(torch.randn(2, 5, 3))
h2, c2 = cell(out[:, -1])
loss = nn.functional.cross_entropy(head(h2), torch.tensor([0, 1]))
loss.backward()
"""

GAT = """
import torch
from torch import nn
torch.manual_seed(0)
edges = torch.tensor([[0, 1, 2, 3, 0], [1, 2, 3, 0, 2]])
features, labels = torch.randn(4, 3), torch.tensor([0, 1, 0, 1])
project, attend = nn.Linear(3, 4, bias=False), nn.Parameter(torch.randn(8))
out = nn.Linear(4, 2)
h = project(features)
source, target = h[edges[0]], h[edges[1]]
score = nn.functional.leaky_relu(torch.cat([source, target], dim=1) @ attend, 0.2)
weight = torch.exp(score - score.max())
total = torch.zeros(4).index_add(0, edges[1], weight)
alpha = weight / total[edges[1]]
gathered = torch.zeros(4, 4).scatter_add(
    0, edges[1].unsqueeze(1).expand(-1, 4), alpha.unsqueeze(1) * source
)
loss = nn.functional.nll_loss(out(nn.functional.elu(gathered)).log_softmax(1), labels)
loss.backward()
"""

GPT = [str(EXAMPLES / "char_gpt" / "train.py"), "--", "--n-layer", "2", "--n-embd", "36"]

TARGETS = {
    "GPT": GPT,
    "ResNet": [str(EXAMPLES / "convnet" / "train.py")],
    "VAE": [str(FOLDER / "clinic" / "healthy" / "variational_autoencoder.py")],
}
"""Arguments that run a program which is there."""

TEXTS = {"LSTM": LSTM, "GAT": GAT}
"""Programs to be written down."""
