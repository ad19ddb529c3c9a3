"""Programs that pull the rug from under whoever runs them; watched, each must still do what it does
alone."""

from __future__ import annotations

from tests.fuzz.writer import telling

HEAD = """
import os, sys
import torch
x = torch.ones(3, requires_grad=True)
(x * 2).sum().backward()
"""

TAIL = """
(x * 3).sum().backward()
print("end", x.grad.tolist())
"""

MIDDLE = {
    "deletes its own file": "os.unlink(__file__)",
    "deletes its own folder": """
import shutil
os.makedirs("gone"); os.chdir("gone"); os.rmdir("../gone")
""",
    "goes to another folder": "os.chdir(os.sep)",
    "closes its stdout": "sys.stdout.flush(); sys.stdout.close(); sys.stdout = None",
    "closes file 1": "sys.stdout.flush(); os.close(1)",
    "closes its stderr": "os.close(2)",
    "closes all files but three": "os.closerange(3, 200)",
    "replaces stdout": """
import io
class Loud(io.StringIO):
    def write(self, text):
        return sys.__stdout__.write(text.upper())
sys.stdout = Loud()
""",
    "has a stdout that raises": """
class Broken:
    def write(self, text): raise ValueError("no")
    def flush(self): raise ValueError("no")
kept, sys.stdout = sys.stdout, Broken()
try:
    print("x")
except ValueError:
    sys.stdout = kept
""",
    "has no stderr": "sys.stderr = None",
    "replaces excepthook": """
sys.excepthook = lambda kind, error, frames: print("mine", kind.__name__)
""",
    "removes excepthook and fails": "del sys.excepthook; 1 / 0",
    "handles its own signals": """
import signal
signal.signal(signal.SIGTERM, lambda *_: print("terminated"))
signal.signal(signal.SIGINT, lambda *_: print("interrupted"))
os.kill(os.getpid(), signal.SIGTERM); os.kill(os.getpid(), signal.SIGINT)
""",
    "terminates itself": "import signal; os.kill(os.getpid(), signal.SIGTERM)",
    "kills itself": "import signal; os.kill(os.getpid(), signal.SIGKILL)",
    "leaves at once": "sys.stdout.flush(); os._exit(7)",
    "becomes another program": """
os.execv(sys.executable, [sys.executable, "-c", "print('another'); raise SystemExit(5)"])
""",
    "forks, and the child leaves": """
__child = os.fork()
random.seed(1)  # python chooses another seed in the child
if not __child:
    print("child", flush=True)
    os._exit(3)
print(os.waitstatus_to_exitcode(os.waitpid(__child, 0)[1]))
""",
    "forks, and the child exits": """
__child = os.fork()
random.seed(1)  # python chooses another seed in the child
if not __child:
    (x * 5).sum().backward()
    sys.exit(3)
print(os.waitstatus_to_exitcode(os.waitpid(__child, 0)[1]))
""",
    "starts a process": """
import multiprocessing
if __name__ == "__main__":
    worker = multiprocessing.get_context("fork").Process(target=(x * 2).sum().item)
    worker.start(); worker.join(); print(worker.exitcode)
""",
    "refuses its arguments": """
import argparse
argparse.ArgumentParser(prog="mine").parse_args(["--nosuch"])
""",
    "empties sys.modules of itself": "del sys.modules['__main__']",
    "changes sys.path and sys.argv": "sys.path[:] = []; sys.argv = None",
    "traces itself": "sys.settrace(lambda *_: None)",
    "limits its recursion": "sys.setrecursionlimit(300)",
    "removes print": "import builtins; mine = print; del builtins.print; builtins.print = mine",
    "hides open": """
import builtins
builtins.open = lambda *_, **__: 1 / 0
""",
    "leaves a thread running": """
import threading
def work():
    threading.main_thread().join()
    print("thread", flush=True)
threading.Thread(target=work).start()
""",
    "leaves a daemon running": """
import threading, time
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
""",
    "leaves at exit": "import atexit; atexit.register(lambda: os._exit(9))",
    "forbids new files": "os.umask(0o777)",
}

ODD = {name: telling(f"{HEAD}{middle}\n{TAIL}") for name, middle in MIDDLE.items()}
