"""Off-policy prediction with a gradient correction; the second net learns much faster."""

import torch
import torch.nn as nn

STATES, GAMMA = 12, 0.8


class Values(nn.Module):
    def __init__(self, features=6):
        super().__init__()
        self.register_buffer("table", torch.eye(features).repeat_interleave(STATES // features, 0))
        self.theta = nn.Linear(features, 1, bias=False)
        self.w = nn.Linear(features, 1, bias=False)
        nn.init.zeros_(self.theta.weight)
        nn.init.zeros_(self.w.weight)


def walk(n: int):
    state = torch.randint(0, STATES, (n,))
    right = torch.rand(n) < 0.5
    following = (state + torch.where(right, 1, -1)) % STATES
    ratio = torch.where(right, 0.7 / 0.5, 0.3 / 0.5)
    reward = (following == 0).float()
    return state, following, reward, ratio


def truth():
    move = torch.zeros(STATES, STATES)
    for s in range(STATES):
        move[s, (s + 1) % STATES] += 0.7
        move[s, (s - 1) % STATES] += 0.3
    reward = move[:, 0]
    return torch.linalg.solve(torch.eye(STATES) - GAMMA * move, reward)


def update(model, slow, fast, batch):
    state, following, reward, ratio = batch
    now, then = model.table[state], model.table[following]
    with torch.no_grad():
        target = reward + GAMMA * model.theta(then).squeeze(1)
        delta = target - model.theta(now).squeeze(1)
        expected = model.w(now).squeeze(1)
        first = ratio * delta
        pull = first[:, None] * now - GAMMA * (ratio * expected)[:, None] * then
        model.theta.weight.grad = -pull.mean(0, keepdim=True)
    fast.zero_grad()
    (ratio * (delta - model.w(now).squeeze(1)).square()).mean().backward()
    slow.step()
    fast.step()
    return delta.square().mean().item()


def main():
    torch.manual_seed(19)
    model = Values()
    slow = torch.optim.SGD(model.theta.parameters(), lr=5.0)
    fast = torch.optim.SGD(model.w.parameters(), lr=2.5)
    goal = truth()
    for step in range(40):
        error = update(model, slow, fast, walk(256))
        if step % 10 == 9:
            with torch.no_grad():
                gap = (model.theta(model.table).squeeze(1) - goal).square().mean().sqrt().item()
            print(f"step {step + 1}: td error {error:.4f}  distance to the values {gap:.4f}")


if __name__ == "__main__":
    main()
