"""Truncated back-propagation through time: state is carried, history is cut on purpose."""

import torch
from torch import nn

torch.manual_seed(0)


class CharRNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(1, 16, batch_first=True)
        self.out = nn.Linear(16, 1)

    def forward(self, x, state=None):
        h, state = self.lstm(x, state)
        return self.out(h), state


signal = torch.sin(torch.linspace(0, 20, 201))[None, :, None]
model = CharRNN()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
state = None
for window in range(5):
    piece = signal[:, window * 40 : window * 40 + 41]
    if state is not None:
        state = tuple(part.detach() for part in state)
    guess, state = model(piece[:, :-1], state)
    loss = nn.functional.mse_loss(guess, piece[:, 1:])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"window {window} loss {loss.item():.4f}")
