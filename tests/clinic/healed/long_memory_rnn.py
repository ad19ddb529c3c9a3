"""Healed. A gated cell with an open forget gate keeps the first input in reach."""

import torch
from torch import nn

torch.manual_seed(0)

STEPS, WIDTH = 60, 12


class Recall(nn.Module):
    def __init__(self):
        super().__init__()
        self.start = nn.Linear(3, WIDTH)
        self.cell = nn.LSTMCell(1, WIDTH)
        self.cell.bias_hh.data[WIDTH : 2 * WIDTH] = 4.0
        self.end = nn.Linear(WIDTH, 3)

    def forward(self, symbol):
        state = self.start(symbol)
        memory = state
        tick = torch.ones(len(symbol), 1)
        for _ in range(STEPS):
            state, memory = self.cell(tick, (state, memory))
        return self.end(state + memory)


labels = torch.randint(0, 3, (30,))
symbols = nn.functional.one_hot(labels, 3).float()
symbols = symbols + 0.05 * torch.randn(30, 3)
model = Recall()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(3):
    loss = nn.functional.cross_entropy(model(symbols), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
