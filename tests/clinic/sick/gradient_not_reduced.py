""" "returned an invalid gradient at index 1 - got [2, 9, 5] but expected shape [9]"."""

import torch
from torch import nn

torch.manual_seed(0)


class AddRow(torch.autograd.Function):  # <~ GS410
    @staticmethod
    def forward(_ctx, x, row):
        return x + row[:, None]

    @staticmethod
    def backward(_ctx, grad):  # <~ GS410
        return grad, grad  # <- GS410


class Channelwise(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.row = nn.Parameter(torch.zeros(channels))
        self.mix = nn.Conv1d(channels, channels, 1)

    def forward(self, x):
        return self.mix(AddRow.apply(x, self.row))  # <~ GS410


model = Channelwise(9)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
signal, wanted = torch.randn(2, 9, 5), torch.randn(2, 9, 5)
for step in range(3):
    loss = nn.functional.mse_loss(model(signal), wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
