# gradscope check: frames of ours in a thread's traceback
import torch
from tests.fuzz.fingerprint import tell, tell_at_exit
tell_at_exit(globals())
import threading
x = torch.randn(2, 3, requires_grad=True)
y = (x.abs() * 2).sum()
y.backward()
thread = threading.Thread(target=y.backward, name="mine")
thread.start()
thread.join()
