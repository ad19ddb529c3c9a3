import torch
import torch.nn.functional as F
from torch import nn


class SparseAttention(nn.Module):
    """One attention head that scores only the edges there are."""

    def __init__(self, n_in, n_out, dropout=0.1, alpha=0.2, concat=True):
        super().__init__()
        self.W = nn.Parameter(torch.empty(n_in, n_out))
        self.a = nn.Parameter(torch.empty(1, 2 * n_out))
        nn.init.xavier_normal_(self.W, gain=1.414)
        nn.init.xavier_normal_(self.a, gain=1.414)
        self.leaky_relu = nn.LeakyReLU(alpha)
        self.dropout = nn.Dropout(dropout)
        self.concat = concat

    def forward(self, x, edge):
        n = x.size(0)
        h = x @ self.W
        pairs = torch.cat([h[edge[0]], h[edge[1]]], dim=1)
        scores = torch.exp(-self.leaky_relu((pairs * self.a).sum(dim=1)))
        attention = torch.sparse_coo_tensor(edge, torch.tensor(scores), (n, n))  # <- GS303
        rowsum = torch.sparse.mm(attention, torch.ones(n, 1))
        h_prime = torch.sparse.mm(attention, self.dropout(h)) / rowsum
        return F.elu(h_prime) if self.concat else h_prime


class GAT(nn.Module):
    def __init__(self, n_features, n_hidden, n_classes, n_heads, dropout=0.1):
        super().__init__()
        self.dropout = dropout
        self.heads = nn.ModuleList(
            SparseAttention(n_features, n_hidden, dropout) for _ in range(n_heads)
        )
        self.out_att = SparseAttention(n_hidden * n_heads, n_classes, dropout, concat=False)

    def forward(self, x, edge):
        x = F.dropout(x, self.dropout, training=self.training)
        x = torch.cat([head(x, edge) for head in self.heads], dim=1)
        return F.log_softmax(self.out_att(x, edge), dim=1)
