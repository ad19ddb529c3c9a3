import torch
from torch import nn

ACCUMULATE = 2


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(10, 32), nn.GELU(), nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer.zero_grad()
    for index in range(12):
        x, y = torch.randn(4, 10), torch.randint(0, 4, (4,))
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()  # <- GS510
        if (index + 1) % ACCUMULATE == 0:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()


main()
