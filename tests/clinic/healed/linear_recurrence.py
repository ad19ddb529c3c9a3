"""Healed. An orthogonal recurrence of norm 1."""

import torch
import torch.nn as nn


class SimpleRNN(nn.Module):
    def __init__(self, input_size, hidden_size):
        super().__init__()
        self.hidden_size = hidden_size
        self.i2h = nn.Linear(input_size + hidden_size, hidden_size)
        self.h2o = nn.Linear(hidden_size, 1)
        nn.init.orthogonal_(self.i2h.weight)

    def forward(self, input, hidden):
        combined = torch.cat((input, hidden), 1)
        hidden = self.i2h(combined)
        return hidden


torch.manual_seed(42)
rnn = SimpleRNN(input_size=10, hidden_size=50)
criterion = nn.MSELoss()
optimizer = torch.optim.SGD(rnn.parameters(), lr=1e-3)
seq = torch.randn(30, 5, 10)
target = torch.randn(5, 1)
for _epoch in range(2):
    hidden = torch.zeros(5, 50)
    for t in range(seq.shape[0]):
        hidden = rnn(seq[t], hidden)
    loss = criterion(rnn.h2o(hidden), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
