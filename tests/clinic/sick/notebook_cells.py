"""I run my notebook as a script. The Poisson loss of the last cell is inf."""

import torch

CELLS = [
    """
import torch
torch.manual_seed(3)
counts = torch.poisson(torch.full((40,), 2.0))
features = torch.randn(40, 5)
""",
    """
weights = torch.randn(5, requires_grad=True)
optimizer = torch.optim.SGD([weights], lr=0.01)
""",
    """
for step in range(3):
    rate = torch.relu(features @ weights)
    loss = (rate - counts * torch.log(rate)).mean()  # <- GS101
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
""",
]


def run(cells):
    namespace = {"torch": torch}
    for number, source in enumerate(cells):
        exec(compile(source, f"<cell {number}>", "exec"), namespace)


run(CELLS)
