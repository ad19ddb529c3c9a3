import torch
import torch.nn.functional as F
from torch import nn


class GraphConv(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.lin = nn.Linear(inputs, outputs)  # <- GS307

    def forward(self, adj, x):
        return torch.bmm(adj, self.lin(x))


class GraphClassifier(nn.Module):
    def __init__(self, n_feat, n_layer, agg_hidden, fc_hidden, n_class, dropout=0.1):
        super().__init__()
        self.n_layer = n_layer
        self.dropout = dropout
        self.graph_convs = []  # <~ GS307
        self.graph_convs.append(GraphConv(n_feat, agg_hidden))
        for _ in range(n_layer - 1):
            self.graph_convs.append(GraphConv(agg_hidden, agg_hidden))
        self.fc1 = nn.Linear(agg_hidden, fc_hidden)
        self.fc2 = nn.Linear(fc_hidden, n_class)

    def readout(self, x, mask):
        return (x * mask.unsqueeze(-1)).sum(1) / mask.sum(1, keepdim=True)

    def forward(self, adj, x, mask):
        for conv in self.graph_convs:
            x = F.relu(conv(adj, x))
            x = F.dropout(x, p=self.dropout, training=self.training)
        x = self.readout(x, mask)
        x = F.relu(self.fc1(x))
        return self.fc2(x)
