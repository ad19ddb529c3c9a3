"""The gradient of the transition matrix is 1e12 and clipping does not help to learn."""

import torch

torch.manual_seed(0)

DIM, HORIZON = 8, 40


def rollout(state, transition, control):
    trajectory = []
    for u in control:
        state = state @ transition + u  # <- GS202
        trajectory.append(state)
    return trajectory


def make_transition():
    q, _ = torch.linalg.qr(torch.randn(DIM, DIM))
    return (1.6 * q).requires_grad_()


transition = make_transition()
start = torch.randn(4, DIM, requires_grad=True)
control = 0.1 * torch.randn(HORIZON, 4, DIM)
goal = torch.randn(4, DIM)
optimizer = torch.optim.SGD([transition, start], lr=1e-20)

for step in range(3):
    loss = (rollout(start, transition, control)[-1] - goal).abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, f"{loss.item():.4g}")
