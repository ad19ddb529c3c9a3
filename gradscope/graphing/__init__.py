"""From a live graph and what was recorded to the plain Graph and BackwardPass of a Report.

    roots, initial_gradient                    --root and --gradient, text to tensors
    probe ─► watched_call                      a backward call of the program's, or one of ours
      │        └► edge_gradients               what flows along each edge in it
      │             └► gradient_table          measured: sizes, states, few values
      ├────► assemble                          in the user's words, as plain data
      ├────► blame                             why backward failed
      └────► study                             what was asked beyond gradients, and who answers

Knows nothing of how a program is run, or at which moment somebody looks.

Gradients on edges
    A post-hook on each node sees the gradients it sends, one an edge.  The sum a node received
    equals the one gradient that arrived, where only one edge arrives; a pre-hook reads it where
    several do, and on leaves.  On the CPU each gradient is reduced to its norm at once, while still
    in the cache; on other devices the reductions are queued and read back at the end.  No gradient
    is kept.  One that a node passes on as it came, at the same version, is not read again.

    A look of our own (``--gradient``, ``--root``, the API) uses ``torch.autograd.grad`` with
    ``retain_graph``, so ``.grad`` and the buffers stay.  A reentrant checkpoint allows only
    ``backward``; there ``.grad`` is put aside and restored.  Python's garbage collector is paused
    while we make the many objects of a large graph, never while code of the program runs.
"""
