"""Fine-tuning from an exported program: weights live in a store, the graph reads them by name."""

import argparse

import torch
import torch.nn.functional as F

from store import WeightStore

SHAPES = {
    "fc1.weight": torch.Size([32, 10]),
    "fc1.bias": torch.Size([32]),
    "fc2.weight": torch.Size([3, 32]),
    "fc2.bias": torch.Size([3]),
}


class Program:
    def __init__(self, store):
        self.store = store

    def forward_backward(self, x, y):
        h = torch.relu(F.linear(x, self.store["fc1.weight"], self.store["fc1.bias"]))
        logits = F.linear(h, self.store["fc2.weight"], self.store["fc2.bias"])
        loss = F.cross_entropy(logits, y)
        loss.backward()
        return loss.item(), (logits.argmax(1) == y).float().mean().item()


class Runner:
    def __init__(self, program, lr):
        self.program = program
        self.params = program.store.named_parameters()
        self.optimizer = torch.optim.SGD(self.params.values(), lr=lr, momentum=0.9)

    def step(self, x, y):
        loss, acc = self.program.forward_backward(x, y)
        for name, grad in self.program.store.named_gradients().items():
            self.params[name].grad = grad.clone()
        self.optimizer.step()
        for grad in self.program.store.named_gradients().values():
            grad.zero_()
        return loss, acc


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--lr", type=float, default=0.05)
    args = parser.parse_args()

    torch.manual_seed(2)
    flat = 0.2 * torch.randn(sum(s.numel() for s in SHAPES.values()))
    runner = Runner(Program(WeightStore.from_flat(flat, SHAPES)), args.lr)
    teacher = torch.randn(10, 3)
    x_eval = torch.randn(256, 10)
    y_eval = (x_eval @ teacher).argmax(1)
    for step in range(args.steps):
        idx = torch.randint(256, (64,))
        loss, acc = runner.step(x_eval[idx], y_eval[idx])
        if step % 20 == 0 or step == args.steps - 1:
            first = runner.program.store["fc1.weight"].flatten()[0].item()
            print(f"step {step:3d} loss {loss:.4f} acc {acc:.3f} param_start {first:.5f}")


if __name__ == "__main__":
    main()
