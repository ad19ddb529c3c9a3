"""What `gradscope backward --by sample` adds, in plain backward passes of the same batch.

    python -m benchmarks.by_sample
    python -m benchmarks.by_sample --samples 48 --rounds 5

A plain `loss.backward()`, a look without `by` and one with it take turns in one process; times are
CPU time on one thread, figures medians.  The table goes to the terminal: it is made by hand.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import sys
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import gradscope
from benchmarks.tables import ROOT, table


class Last(nn.Module):
    """The last step of what an RNN gives."""

    def forward(self, given: tuple[Tensor, Tensor]) -> Tensor:
        return given[0][:, -1]


class Patches(nn.Module):
    """A picture as a row of patches, after one of their own for the whole of it."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.cut = nn.Conv2d(3, width, 8, 8)
        self.whole = nn.Parameter(torch.randn(1, 1, width))
        self.places = nn.Parameter(torch.randn(1, 17, width))

    def forward(self, x: Tensor) -> Tensor:
        parts = self.cut(x).flatten(2).transpose(1, 2)
        return torch.cat([self.whole.expand(len(x), -1, -1), parts], 1) + self.places


def _char_gpt(samples: int) -> Tensor:
    sys.path.insert(0, str(ROOT / "examples" / "char_gpt"))
    model = importlib.import_module("model")
    ids, next_ids = torch.randint(65, (2, samples, 64))
    loss: Tensor = model.GPT(model.GPTConfig(vocab_size=65))(ids, next_ids)[1]
    return loss


def _classified(x: Tensor, *layers: nn.Module) -> Tensor:
    out = nn.Sequential(*layers)(x)
    return F.cross_entropy(out, torch.randint(out.shape[1], (len(out),)))


def _mlp(samples: int) -> Tensor:
    first, second = nn.Linear(256, 512), nn.Linear(512, 512)
    x = torch.randn(samples, 256)
    return _classified(x, first, nn.ReLU(), second, nn.ReLU(), nn.Linear(512, 10))


def _cnn(samples: int, norm: Callable[[int], nn.Module]) -> Tensor:
    first, second = nn.Conv2d(3, 32, 3, padding=1), nn.Conv2d(32, 64, 3, 2, padding=1)
    last = nn.Flatten(), nn.Linear(64 * 256, 10)
    x = torch.randn(samples, 3, 32, 32)
    return _classified(x, first, norm(32), nn.ReLU(), second, norm(64), nn.ReLU(), *last)


def _rnn(samples: int, kind: Callable[..., nn.Module]) -> Tensor:
    net = kind(64, 128, 2, batch_first=True)
    x = torch.randint(50, (samples, 40))
    return _classified(x, nn.Embedding(50, 64), net, Last(), nn.Linear(128, 5))


def _vit(samples: int) -> Tensor:
    layer = nn.TransformerEncoderLayer(96, 4, 384, batch_first=True, dropout=0.0)
    last = nn.Flatten(), nn.Linear(17 * 96, 10)
    x = torch.randn(samples, 3, 32, 32)
    return _classified(x, Patches(96), nn.TransformerEncoder(layer, 4), *last)


NETS: dict[str, Callable[[int], Tensor]] = {
    "examples/char_gpt, 12 layers": _char_gpt,
    "ViT, 4 layers": _vit,
    "CNN with group norm": lambda samples: _cnn(samples, lambda width: nn.GroupNorm(8, width)),
    "CNN with batch norm, which mixes samples": lambda samples: _cnn(samples, nn.BatchNorm2d),
    "GRU, a matrix product for each step": lambda samples: _rnn(samples, nn.GRU),
    "LSTM, one operation a layer": lambda samples: _rnn(samples, nn.LSTM),
    "MLP of 256, 512, 512, 10": _mlp,
}


def _milliseconds(work: Callable[[], object]) -> float:
    begun = time.process_time()
    work()
    return 1e3 * (time.process_time() - begun)


def row(name: str, samples: int, rounds: int) -> tuple[str, ...]:
    """One line of the table."""
    torch.manual_seed(0)
    loss = NETS[name](samples)
    works: tuple[Callable[[], object], ...] = (
        lambda: torch.autograd.backward(loss, retain_graph=True),
        lambda: gradscope.backward(loss),
        lambda: gradscope.backward(loss, by="sample"),
    )
    times = zip(*(map(_milliseconds, works) for _ in range(rounds + 1)), strict=True)
    plain, look, apart = (statistics.median(one[1:]) for one in map(list, times))
    return name, f"{plain:.1f}", f"{apart - look:,.0f}", f"{(apart - look) / plain:.1f}"


def main() -> None:
    """Measure all of them, and print the table."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n")[0])
    parser.add_argument("--samples", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    torch.set_num_threads(1)
    rows = [row(name, args.samples, args.rounds) for name in NETS]
    head = (f"{args.samples} samples", "plain backward, ms", "--by sample, ms more", "ratio")
    print(table(head, rows), end="")


if __name__ == "__main__":
    main()
