"""What rank 0 needs to put the looks of many ranks together: seconds, and memory.

    python -m benchmarks.ranks [RANKS] [NODES]

Synthetic: a chain of NODES nodes, every second one with a parameter, looked at by RANKS ranks, each
with gradients of its own size.  Memory must not grow with the ranks.
"""

from __future__ import annotations

import sys
import time
import tracemalloc
import zlib

import msgspec

from gradscope.model import storage
from gradscope.model.plain import TensorInfo
from gradscope.model.report import (
    Accumulation,
    BackwardPass,
    Edge,
    GradientInfo,
    Graph,
    Leaf,
    Meta,
    Node,
    Report,
    Root,
)
from gradscope.ranks import Job
from gradscope.ranks.collected import Collected
from gradscope.ranks.looks import look_of


def report(nodes: int) -> Report:
    """A chain with a leaf at every node; half of the nodes are leaves."""
    ops = nodes // 2
    info = TensorInfo((64, 64), "float32")
    every = [Node(n, "MulBackward0", outputs=(info,)) for n in range(ops)]
    every += [Node(ops + n, "AccumulateGrad", "leaf", outputs=(info,)) for n in range(ops)]
    edges = [Edge(n, 0, n + 1, 0) for n in range(ops - 1)]
    edges += [Edge(n, 1, ops + n, 0) for n in range(ops)]
    leaves = [Leaf(ops + n, (f"layers.{n}.weight",), info, norm=1.0) for n in range(ops)]
    gradient = GradientInfo("finite", 1.0)
    passed = BackwardPass(
        (gradient,),
        (0,) * len(edges),
        ((0,),) * len(every),
        (0,),
        tuple(Accumulation(0, None, 0) for _ in leaves),
        number=1,
    )
    graph = Graph(tuple(every), tuple(edges), tuple(leaves), (Root(0, 0, "loss"),))
    return Report(graph, Meta("bench"), (passed,))


def main(ranks: int = 1024, nodes: int = 10_000) -> None:
    """Print the figures."""
    first = report(nodes)
    own = look_of(first, Job(0, ranks), None or "", 1)
    packed = zlib.compress(msgspec.msgpack.encode(own), 6)
    print(f"{nodes:,} nodes, {len(own.parameters):,} parameters; one look: {len(packed):,} bytes")
    tracemalloc.start()
    every = Collected(first, own, ranks)
    begin, sizes = time.perf_counter(), []
    for rank in range(1, ranks):
        look = msgspec.msgpack.decode(zlib.decompress(packed), type=type(own))
        gradient = GradientInfo("finite", 1.0 + rank % 7)
        parameters = tuple(msgspec.structs.replace(one, local=gradient) for one in look.parameters)
        every.add(msgspec.structs.replace(look, rank=rank, parameters=parameters))
        if rank in (ranks // 8, ranks - 1):
            del look, parameters
            sizes.append(tracemalloc.get_traced_memory())
    seconds = time.perf_counter() - begin
    for (now, most), count in zip(sizes, (ranks // 8, ranks - 1), strict=True):
        print(f"after {count:,} ranks: {now / 2**20:.1f} MiB held, {most / 2**20:.1f} MiB at most")
    data = storage.encode(every.report(10.0))
    print(
        f"{seconds / ranks * 1e3:.1f} ms a rank (traced); the report: {len(data) / 2**20:.1f} MiB"
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
