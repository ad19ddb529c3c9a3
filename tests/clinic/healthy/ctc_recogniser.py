"""Speech recognition with CTC loss."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class Recogniser(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(5, 16, batch_first=True, bidirectional=True)
        self.out = nn.Linear(32, 9)

    def forward(self, x):
        return self.out(self.rnn(x)[0]).log_softmax(dim=-1)


sound = torch.randn(6, 30, 5)
letters = torch.randint(1, 9, (6, 7))
sound_lengths = torch.tensor([30, 28, 25, 30, 22, 27])
letter_lengths = torch.tensor([7, 5, 6, 4, 7, 3])
model = Recogniser()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(3):
    log_probs = model(sound).transpose(0, 1)
    loss = F.ctc_loss(log_probs, letters, sound_lengths, letter_lengths, zero_infinity=True)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
