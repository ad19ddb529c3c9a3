"""Healed. A learning rate that fits."""

import torch
import torch.nn as nn


class TopicRNN(nn.Module):
    def __init__(self, vocab, topics=6):
        super().__init__()
        self.infer = nn.Sequential(
            nn.Linear(vocab, 24),
            nn.ReLU(),
            nn.Linear(24, topics),
        )
        self.decode = nn.Linear(topics, vocab)

    def forward(self, bow):
        theta = self.infer(bow).softmax(-1)
        return self.decode(theta).log_softmax(-1)


torch.manual_seed(0)
counts = torch.poisson(torch.rand(50, 40) * 3)
net = TopicRNN(40)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for step in range(5):
    loss = -(net(counts) * counts).sum(1).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, loss.item())
