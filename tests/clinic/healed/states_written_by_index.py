"""Healed. The states are collected in a list and stacked."""

import torch
from torch import nn

torch.manual_seed(0)


class MyRNN(nn.Module):
    def __init__(self, inputs, width):
        super().__init__()
        self.w_in = nn.Parameter(torch.randn(inputs, width) / inputs**0.5)
        self.w_rec = nn.Parameter(torch.randn(width, width) / width**0.5)
        self.width = width

    def forward(self, x):
        batch, steps, _ = x.shape
        states = [x.new_zeros(batch, self.width)]
        for t in range(steps):
            recurrent = torch.mm(states[-1], self.w_rec)
            states.append(torch.tanh(torch.mm(x[:, t], self.w_in) + recurrent))
        return torch.stack(states[1:], dim=1)


model = MyRNN(3, 10)
readout = nn.Linear(10, 1)
optimizer = torch.optim.Adam([*model.parameters(), *readout.parameters()], lr=1e-2)
x = torch.randn(12, 6, 3)
y = x.cumsum(dim=1)[..., :1]
for epoch in range(3):
    loss = nn.functional.mse_loss(readout(model(x)), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(epoch, loss.item())
