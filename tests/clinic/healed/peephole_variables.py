"""ConvLSTM: are the peephole weights Wci, Wcf, Wco ever trained? They stay zero."""

import torch
import torch.nn as nn

torch.manual_seed(0)


class ConvLSTMCell(nn.Module):
    def __init__(self, inp, hid, size):
        super().__init__()
        self.hid = hid
        self.conv = nn.Conv2d(inp + hid, 4 * hid, 3, padding=1)
        self.Wci = nn.Parameter(torch.zeros(1, hid, size, size))
        self.Wcf = nn.Parameter(torch.zeros(1, hid, size, size))
        self.Wco = nn.Parameter(torch.zeros(1, hid, size, size))

    def forward(self, x, h, c):
        i, f, g, o = self.conv(torch.cat([x, h], 1)).chunk(4, dim=1)
        i, f = torch.sigmoid(i + c * self.Wci), torch.sigmoid(f + c * self.Wcf)
        c = f * c + i * torch.tanh(g)
        o = torch.sigmoid(o + c * self.Wco)
        return o * torch.tanh(c), c


class Nowcast(nn.Module):
    def __init__(self, size=6):
        super().__init__()
        self.cell = ConvLSTMCell(1, 4, size)
        self.out = nn.Conv2d(4, 1, 1)

    def forward(self, frames):
        b, t, _, s, _ = frames.shape
        h = c = frames.new_zeros(b, self.cell.hid, s, s)
        for k in range(t):
            h, c = self.cell(frames[:, k], h, c)
        return self.out(h)


model = Nowcast()
optim = torch.optim.Adam(model.parameters(), lr=1e-3)
mse = nn.MSELoss()
for it in range(3):
    clip = torch.rand(4, 5, 1, 6, 6)
    loss = mse(model(clip[:, :4]), clip[:, 4])
    optim.zero_grad()
    loss.backward()
    optim.step()
    print(f"[{it}] {loss.item():.5f}")
