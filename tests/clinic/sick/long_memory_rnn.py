"""The network must recall the first symbol of the sequence and never beats chance."""

import torch
from torch import nn

torch.manual_seed(0)

STEPS, WIDTH = 60, 12


class Recall(nn.Module):
    def __init__(self):
        super().__init__()
        self.start = nn.Linear(3, WIDTH)
        self.recurrent = nn.Linear(WIDTH, WIDTH)
        self.end = nn.Linear(WIDTH, 3)

    def forward(self, symbol):
        state = self.start(symbol)
        for _ in range(STEPS):
            state = torch.tanh(self.recurrent(state))  # <- GS201
        return self.end(state)


labels = torch.randint(0, 3, (30,))
symbols = nn.functional.one_hot(labels, 3).float()
model = Recall()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(3):
    loss = nn.functional.cross_entropy(model(symbols), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
