"""A small network trained by several processes, each with data of its own.

    torchrun --nproc-per-node 2 examples/ranks/train.py [--sharded] [--broken] [--accumulate]

--broken puts a number that is not one into the data of the last rank; --sharded spreads the
parameters over the ranks (FSDP2) instead of keeping all on each; --accumulate adds up the gradients
of two batches before they are averaged.
"""

import sys
from contextlib import nullcontext

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

SHARDED = "--sharded" in sys.argv
BROKEN = "--broken" in sys.argv
ACCUMULATE = "--accumulate" in sys.argv


class Forecast(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(6, 16)
        self.head = nn.Linear(16, 1)

    def forward(self, x):
        return self.head(torch.tanh(self.encoder(x)))


def batches(rank, size):
    generator = torch.Generator().manual_seed(rank)
    for number in range(4):
        x = torch.randn(32, 6, generator=generator)
        y = x[:, :2].sum(1, keepdim=True)
        if BROKEN and rank == size - 1 and number == 2:
            y[7] = float("nan")
        yield x, y


def main():
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    if SHARDED:
        model = Forecast()
        fully_shard(model.encoder)
        fully_shard(model.head)
        fully_shard(model)
    else:
        model = DistributedDataParallel(Forecast())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for number, (x, y) in enumerate(batches(rank, size)):
        waits = ACCUMULATE and number % 2 == 0
        with model.no_sync() if waits else nullcontext():
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
        if not waits:
            optimizer.step()
            optimizer.zero_grad()
    del model, optimizer, loss  # what DistributedDataParallel holds has to go before its group
    dist.destroy_process_group()


main()
