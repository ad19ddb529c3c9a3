import torch
import torch.nn.functional as F
from torch import nn


class QuestionEncoder(nn.Module):
    """Bi-directional recurrent encoder; the words vote with their attention weight."""

    def __init__(self, vocabulary, embed_dim, hidden, entity_dim):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, embed_dim, padding_idx=0)
        self.gru = nn.GRU(embed_dim, hidden, bidirectional=True)
        self.attn = nn.Linear(2 * hidden + embed_dim, 1)
        self.hidden2tag = nn.Sequential(
            nn.Linear(2 * hidden + embed_dim, hidden), nn.ReLU(), nn.Linear(hidden, entity_dim)
        )

    def forward(self, question):
        x = self.embed(question)
        outputs, _ = self.gru(x)
        joint = torch.cat((x, outputs), dim=-1)
        length, batch, _ = joint.shape
        scores = self.attn(joint.view(length * batch, -1)).tanh()
        weights = F.softmax(scores, dim=1)  # <- GS205
        weighted = joint * weights.view(length, batch, 1)
        return self.hidden2tag(weighted).mean(0)
