"""A training that is watched for as long as it runs: one row of norms for a step.

Hears of backward calls by the one function of torch that makes them, and of steps by the hooks that
torch has for all optimizers; puts no hook on a parameter, so that a call which is not looked at
costs next to nothing.  Reads ``.grad`` after backward and after the step.

Where something happens the doctor looks at the next call, and its report is kept.
Knows nothing of graphs or lines itself.
"""
