"""TypeError: unsupported operand type(s) for *: 'float' and 'NoneType' when I update my weights."""

import torch

torch.manual_seed(0)

INPUT, HIDDEN, OUTPUT = 10, 20, 4
RATE = 0.05

w1 = torch.randn(INPUT, HIDDEN, requires_grad=True) * 0.1  # <- GS306
w2 = (torch.randn(HIDDEN, OUTPUT) * 0.1).requires_grad_()

numbers = torch.arange(1, 65)
bits = ((numbers[:, None] >> torch.arange(INPUT)) & 1).float()
answers = (numbers % 3 == 0).long() + 2 * (numbers % 5 == 0).long()
onehot = torch.nn.functional.one_hot(answers, OUTPUT).float()

for step in range(4):
    hidden = torch.tanh(bits @ w1)
    output = torch.sigmoid(hidden @ w2)
    loss = ((output - onehot) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        for w in (w1, w2):
            w -= RATE * w.grad
            w.grad.zero_()
    print(f"step {step} loss {loss.item():.5f}")
