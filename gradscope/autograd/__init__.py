"""One live node or tensor of torch, asked so that it always answers and nobody notices.

``tensors`` asks and remembers tensors, ``saved`` what a node keeps, ``walk`` and ``nodes`` the
graph, ``calls`` a backward call; ``summary`` turns tensors into plain numbers, with ``norms`` and
``histogram``; ``isolation`` keeps what we do from being noticed.  Knows nothing of the program's
source, of its calls, or of what anyone wants to know.
"""
