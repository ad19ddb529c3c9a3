"""``gradscope`` as a command that starts in milliseconds: a fork of a process that has imported
all.

The docs show hundreds of commands, and most of the time of each would go into importing torch.  The
command itself is a small client: it hands its arguments, folder, environment and streams to the
server, and ends as the fork ends.  What depends on how python starts is tested elsewhere, by
processes of their own.
"""

from __future__ import annotations

import array
import atexit
import io
import json
import os
import pkgutil
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from functools import cache
from importlib import import_module
from pathlib import Path

from tests.fuzz.process import _end, _status_of

ROOT = Path(__file__).parent.parent

_CLIENT = """#!{python} -ISE
import array, json, os, signal, socket, sys
server = socket.socket(socket.AF_UNIX)
server.connect({address!r})
words = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
streams = array.array("i", [0, 1, 2])
server.sendmsg([len(words).to_bytes(8, "big")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, streams)])
server.sendall(words)
status = int.from_bytes(server.recv(2), "big", signed=True)
if status < 0:
    signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)
os._exit(status)
"""


def client(path: Path) -> None:
    """Write the command: an executable file."""
    path.write_text(_CLIENT.format(python=sys.executable, address=_address()))
    path.chmod(0o755)


@cache
def _address() -> str:
    """Where the server of this process listens; it is started when first asked for."""
    folder = tempfile.mkdtemp(prefix="gradscope-tests-")
    address = f"{folder}/socket"
    server = subprocess.Popen([sys.executable, "-m", "tests.forkserver", address], cwd=ROOT)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(server.terminate)
    while not Path(address).exists():
        if server.poll() is not None:
            raise RuntimeError(f"the server ended with status {server.returncode}")
        time.sleep(0.05)
    return address


def _serve(address: str) -> None:
    import torch

    import gradscope

    torch.set_num_threads(1)
    for module in pkgutil.walk_packages(gradscope.__path__, "gradscope."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(f"{address}.new")
    listening.listen()
    Path(f"{address}.new").rename(address)
    while True:
        asked, _ = listening.accept()
        with asked:
            child = os.fork()
            if not child:
                listening.close()
                _answer(asked)
            _, raw = os.waitpid(child, 0)
            asked.send(os.waitstatus_to_exitcode(raw).to_bytes(2, "big", signed=True))


def _answer(asked: socket.socket) -> None:
    """Become the command that a client asks for; never returns."""
    streams = array.array("i")
    head, ancillary, _, _ = asked.recvmsg(8, socket.CMSG_SPACE(3 * streams.itemsize))
    streams.frombytes(ancillary[0][2])
    with asked.makefile("rb") as reader:
        words, folder, environment = json.loads(reader.read(int.from_bytes(head, "big")))
    asked.close()
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    atexit._clear()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    sys.stdin = sys.__stdin__ = open(0, closefd=False)  # type: ignore[misc]  # noqa: SIM115
    sys.stdout = sys.__stdout__ = _text(1)  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = _text(2)  # type: ignore[misc]
    sys.argv[:] = ["gradscope", *words]
    from gradscope.cli.entry import entry

    try:
        _end(_status_of(entry))
    finally:
        os._exit(1)


def _text(number: int) -> io.TextIOWrapper:
    """A stream without a buffer, as with PYTHONUNBUFFERED, so that lines come in their order."""
    raw = open(number, "wb", 0, closefd=False)  # noqa: SIM115
    return io.TextIOWrapper(raw, "utf-8", "backslashreplace", write_through=True)


if __name__ == "__main__":
    _serve(sys.argv[1])
