"""What the docs' ``torchrun`` is in tests: ``--nproc-per-node N -m gradscope ...`` in N forks.

The first argument is the command that stands for gradscope.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys


def main() -> int:
    command, flag, size, module, name, *arguments = sys.argv[1:]
    if (flag, module, name) != ("--nproc-per-node", "-m", "gradscope"):
        raise SystemExit(f"not known here: {sys.argv[2:]}")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    started = [
        subprocess.Popen(
            [command, *arguments],
            env={
                **os.environ,
                "RANK": str(rank),
                "LOCAL_RANK": str(rank),
                "WORLD_SIZE": size,
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": str(port),
            },
        )
        for rank in range(int(size))
    ]
    return max(one.wait() for one in started)


if __name__ == "__main__":
    sys.exit(main())
