"""Commands that start in milliseconds: forks of a process that has imported all.

The docs show hundreds of commands, and most of the time of each would go into importing torch.  A
command is a small client: it hands its arguments, folder, environment and streams to the server,
passes on the signals it gets, and ends as the fork ends.  What depends on how python starts is
tested elsewhere, by processes of their own.

All processes of one session of pytest share a server.  It ends when none of them is connected.
"""

from __future__ import annotations

import array
import atexit
import contextlib
import io
import marshal
import os
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from functools import cache, partial
from pathlib import Path
from types import ModuleType

from tests.fuzz.process import _end, _status_of, environment

ROOT = Path(__file__).parent.parent

# Only what is built into python: socket, signal and json cost more than all the rest of a client.
_CLIENT = """#!{python} -ISE
import _signal, _socket, marshal, os, sys
{choose}
server = _socket.socket(_socket.AF_UNIX)
server.connect({address!r})
message = marshal.dumps([code, words, os.getcwd(), dict(os.environ)])
streams = b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2))
ancillary = (_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)
server.sendmsg([len(message).to_bytes(8, "big")], [ancillary])
server.sendall(message)
child = int.from_bytes(server.recv(4), "big")
for number in (_signal.SIGINT, _signal.SIGTERM):
    _signal.signal(number, lambda number, _: os.kill(child, number))
status = int.from_bytes(server.recv(2), "big", signed=True)
if status < 0:
    if -status != _signal.SIGKILL:
        _signal.signal(-status, _signal.SIG_DFL)
    os.kill(os.getpid(), -status)
os._exit(status)
"""

_GRADSCOPE = """\
code = "import sys; from gradscope.cli import entry; sys.executable = {shim!r}; entry()"
words = ["gradscope", *sys.argv[1:]]
"""

_PYTHON = """\
if sys.argv[1:2] != ["-c"]:
    os.execv({python!r}, [{python!r}, *sys.argv[1:]])
code, words = sys.argv[2], ["-c", *sys.argv[3:]]
"""

_SCRIPT = """\
code, words = "", sys.argv[1:]
"""


def client(path: Path) -> None:
    """Put a ``gradscope`` of one's own there: an executable file."""
    shutil.copy(gradscope(), path)


def gradscope() -> str:
    """The path of the one that the session shares."""
    return str(Path(_address()).with_name("gradscope"))


def python() -> str:
    """The path of a python whose ``-c`` is a fork; whatever else it is asked for starts anew."""
    return str(Path(_address()).with_name("python"))


def module(name: str) -> list[str]:
    """What to put before the arguments of ``python -m NAME``, for a module with a ``main``."""
    return [python(), "-c", f"import sys; from {name} import main; sys.exit(main())"]


def script() -> str:
    """The path of a python that runs a file in a fork."""
    return str(Path(_address()).with_name("script"))


# Huge pages, which only memory of malloc gets, make a fork cheaper: there is less to share.
_IN_HUGE_PAGES = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1", "PYTHONMALLOC": "malloc"}

_LIFELINE = socket.socket(socket.AF_UNIX)
"""While it is open, the server goes on."""

atexit.register(_LIFELINE.close)


_SESSION = os.environ.get("PYTEST_XDIST_TESTRUNUID", f"{os.getpid()}-{time.time_ns()}")
FOLDER = Path(tempfile.gettempdir(), f"gradscope-tests-{_SESSION[:24]}")
"""What is of the server, and torch's formulas as it has kept them."""


@cache
def _address() -> str:
    """Where the server of this session listens; it is started when first asked for."""
    address = f"{FOLDER}/socket"
    with contextlib.suppress(FileExistsError):  # another process of the session was first
        FOLDER.mkdir(mode=0o700)
        _start(address)
    end = time.monotonic() + 120
    while True:
        try:
            _LIFELINE.connect(address)
            return address
        except (FileNotFoundError, ConnectionRefusedError):
            if time.monotonic() > end:
                raise RuntimeError("the server of forks has not started") from None
            time.sleep(0.05)


def _start(address: str) -> None:
    command = [sys.executable, "-m", "tests.forkserver", address]
    with Path(address).with_name("log").open("wb") as log:
        server = subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment() | _IN_HUGE_PAGES,
            stdout=log,
            stderr=log,
            # Not among those that Ctrl-C is for: it ends when they have ended.
            start_new_session=True,
        )
    server.returncode = 0  # it may outlive this process, which is no reason for a warning


def _serve(address: str) -> None:
    from gradscope.analyses.explain.rules import formulas
    from tests.fuzz import runs

    formulas()  # kept for all that are forked
    runs.warm_up()
    # The first line of a script ends its path at a blank, which the path of python may have.
    interpreter = Path(address).with_name("interpreter")
    interpreter.symlink_to(Path(sys.executable).resolve())
    for name, choose in (("gradscope", _GRADSCOPE), ("python", _PYTHON), ("script", _SCRIPT)):
        path = Path(address).with_name(name)
        # What gradscope starts itself, as diff does, need not import torch anew either.
        chosen = choose.format(python=sys.executable, shim=str(path.with_name("python")))
        text = _CLIENT.format(python=interpreter, address=address, choose=chosen)
        path.write_text(text)
        path.chmod(0o755)
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(f"{address}.new")
    listening.listen(64)
    Path(f"{address}.new").rename(address)
    try:
        _answer_all(listening)
    finally:
        shutil.rmtree(Path(address).parent, ignore_errors=True)


def _answer_all(listening: socket.socket) -> None:
    """Answer until nobody is connected any more."""
    ready = selectors.DefaultSelector()
    ready.register(listening, selectors.EVENT_READ)
    has_begun = False
    while not has_begun or len(ready.get_map()) > 1:
        for key, _ in ready.select():
            if key.fileobj is listening:
                ready.register(listening.accept()[0], selectors.EVENT_READ)
                has_begun = True
                continue
            ready.unregister(key.fileobj)
            if key.data is not None:
                _tell_end(key.fd, *key.data)
            elif isinstance(key.fileobj, socket.socket):
                _take(key.fileobj, ready)


def _take(asked: socket.socket, ready: selectors.BaseSelector) -> None:
    """Fork for what a client asks; one that has gone has asked for nothing."""
    streams = array.array("i")
    head, ancillary, _, _ = asked.recvmsg(8, socket.CMSG_SPACE(3 * streams.itemsize))
    if not head:
        asked.close()
        return
    streams.frombytes(ancillary[0][2])
    child = os.fork()
    if not child:
        with asked, asked.makefile("rb") as reader:
            message = reader.read(int.from_bytes(head, "big"))
        for key in list(ready.get_map().values()):
            os.close(key.fd)
        ready.close()
        _become(message, streams)
    for descriptor in streams:
        os.close(descriptor)
    with contextlib.suppress(BrokenPipeError):
        asked.send(child.to_bytes(4, "big"))
    ready.register(os.pidfd_open(child), selectors.EVENT_READ, (asked, child))


def _tell_end(descriptor: int, asked: socket.socket, child: int) -> None:
    os.close(descriptor)
    _, raw = os.waitpid(child, 0)
    with asked, contextlib.suppress(BrokenPipeError):
        asked.send(os.waitstatus_to_exitcode(raw).to_bytes(2, "big", signed=True))


def _become(message: bytes, streams: array.array[int]) -> None:
    """Become the command that a client asks for; never returns."""
    from tests.fuzz import runs

    code, words, folder, environment = marshal.loads(message)
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    tempfile.tempdir = None  # the server has looked for it in its own environment
    atexit._clear()
    # Who starts the tests in the background of a shell may have told us to ignore it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.stdin = sys.__stdin__ = open(0, closefd=False)  # type: ignore[misc]  # noqa: SIM115
    sys.stdout = sys.__stdout__ = _text(1)  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = _text(2)  # type: ignore[misc]
    sys.argv[:] = words
    sys.modules["__main__"] = main = ModuleType("__main__")
    script, *arguments = words
    run = partial(exec, code, vars(main)) if code else runs.plain(Path(script), *arguments)
    try:
        _end(_status_of(run))
    finally:
        os._exit(1)


def _text(number: int) -> io.TextIOWrapper:
    """A stream without a buffer, as with PYTHONUNBUFFERED, so that lines come in their order."""
    raw = open(number, "wb", 0, closefd=False)  # noqa: SIM115
    return io.TextIOWrapper(raw, "utf-8", "backslashreplace", write_through=True)


if __name__ == "__main__":
    _serve(sys.argv[1])
