"""An orthogonal recurrent network on an endless stream, truncated back-propagation."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import clip_grad_norm_
from torch.nn.utils.parametrizations import orthogonal, weight_norm


class ModReLU(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.bias = nn.Parameter(torch.full((width,), -0.01))

    def forward(self, x):
        return torch.sign(x) * F.relu(x.abs() + self.bias)


class OrthogonalRNN(nn.Module):
    def __init__(self, n_in, width, n_out):
        super().__init__()
        self.inputs = nn.Linear(n_in, width)
        self.transition = orthogonal(
            nn.Linear(width, width, bias=False), orthogonal_map="matrix_exp"
        )
        self.activation = ModReLU(width)
        self.readout = weight_norm(nn.Linear(width, n_out))

    def forward(self, chunk, state):
        outputs = []
        for x in chunk:
            state = self.activation(self.inputs(x) + self.transition(state))
            outputs.append(self.readout(state))
        return torch.stack(outputs), state

    def initial_state(self, batch):
        return torch.zeros(batch, self.transition.in_features)


class DelayedEcho:
    """Symbols that have to be repeated three steps later."""

    def __init__(self, batch, symbols=4, delay=3):
        self.symbols, self.delay = symbols, delay
        self.tail = torch.zeros(delay, batch, dtype=torch.long)

    def chunk(self, length):
        fresh = torch.randint(0, self.symbols, (length, self.tail.shape[1]))
        stream = torch.cat([self.tail, fresh])
        self.tail = stream[-self.delay :]
        return F.one_hot(fresh, self.symbols).float(), stream[:length]


def main():
    torch.manual_seed(1)
    batch, length, chunks = 24, 8, 40
    stream = DelayedEcho(batch)
    model = OrthogonalRNN(stream.symbols, 32, stream.symbols)
    recurrent = list(model.transition.parameters())
    others = [p for p in model.parameters() if all(p is not q for q in recurrent)]
    optimizer = torch.optim.RMSprop(
        [{"params": others, "lr": 1e-2}, {"params": recurrent, "lr": 2e-3}]
    )
    scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=[1e-2, 2e-3], total_steps=chunks
    )
    state = model.initial_state(batch)
    running = None
    for step in range(chunks):
        x, target = stream.chunk(length)
        if step % 20 == 0:
            state = model.initial_state(batch)
        with torch.nn.utils.parametrize.cached():
            logits, state = model(x, state.detach())
        loss = F.cross_entropy(logits.flatten(0, 1), target.flatten())
        optimizer.zero_grad()
        loss.backward()
        norm = clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        running = loss.item() if running is None else 0.8 * running + 0.2 * loss.item()
        if step % 13 == 0:
            accuracy = (logits.argmax(-1) == target).float().mean().item()
            print(f"step {step} loss {running:.3f} norm {norm.item():.2f} accuracy {accuracy:.2f}")
    with torch.no_grad():
        weight = model.transition.weight
        drift = (weight @ weight.T - torch.eye(32)).abs().max().item()
    print(f"largest departure from orthogonality {drift:.1e}")


if __name__ == "__main__":
    main()
