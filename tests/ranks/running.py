"""A command in each of several ranks, as a launcher starts them: forks that have imported all."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from tests import forkserver
from tests.looking import Done

LIMIT = 300
"""Seconds after which a rank counts as hanging."""

PROGRAM = Path(__file__).with_name("program.py")


def run(
    folder: Path,
    arguments: Sequence[str],
    size: int = 2,
    command: Sequence[str] = (),
    has_agent: bool = True,
    is_launched: bool = True,
    unwatched: Sequence[int] = (),
) -> list[Done]:
    """Run ``gradscope`` with these arguments in each rank.

    Args:
        folder: the current directory of all of them.
        size: how many ranks.
        command: what to run instead of gradscope.
        has_agent: the store is kept by a process of its own, as torchrun does, not by rank 0.
        is_launched: RANK and WORLD_SIZE say who is who; else Slurm's own names do.
        unwatched: ranks that run ``train.py`` without gradscope.
    """
    from torch._C._distributed_c10d import TCPStore

    port, store = _free_port(), None
    if has_agent:
        store = TCPStore("127.0.0.1", 0, None, True, timedelta(seconds=60), False)
        port = store.port
    watched = [*(command or [forkserver.gradscope()]), *arguments]
    started = [
        subprocess.Popen(
            _plainly() if rank in unwatched else watched,
            cwd=folder,
            env={
                **_environment(folder, port, has_agent),
                **dict(zip(_NAMES[is_launched], map(str, (rank, rank, size)), strict=True)),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(size)
    ]
    try:
        told = [one.communicate(timeout=LIMIT) for one in started]
    finally:
        for one in started:
            one.kill()
    del store
    return [Done(one.returncode, *texts) for one, texts in zip(started, told, strict=True)]


def _environment(folder: Path, port: int, has_agent: bool) -> dict[str, str]:
    return {
        **os.environ,
        "XDG_CACHE_HOME": str(folder / ".cache"),
        "OMP_NUM_THREADS": "1",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "TORCHELASTIC_USE_AGENT_STORE": str(has_agent),
        # Else one rank may have ended while another still connects to it, which then fails.
        "TORCH_DIST_INIT_BARRIER": "1",
    }


_NAMES = {
    True: ("RANK", "LOCAL_RANK", "WORLD_SIZE"),
    False: ("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS"),
}


def _plainly() -> list[str]:
    return [forkserver.python(), "-c", "exec(open('train.py').read())"]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
