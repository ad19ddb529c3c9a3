"""One live node or tensor of torch, asked so that it always answers and nobody notices.

``tensors`` asks and remembers tensors, ``elements`` asks whether they can be read, ``saved`` what a
node keeps, ``nodes`` the graph, ``calls`` a backward call; ``summary`` turns tensors into plain
numbers, with ``numbers``; ``isolation`` keeps what we do from being noticed. Knows nothing of the
program's source, of its calls, or of what anyone wants to know.

Not to be noticed
    Everything of ours that runs in the middle of the program runs in an ``Aside`` or in
    ``hidden()``: no mode, tensor class or profiler of the program hears of it, and nothing is
    raised.  What went wrong is kept in words as a ``Fault``, and makes the exit status 4 when the
    answer is not known because of it.  A view that torch has forbidden raises when it is asked for
    its ``grad_fn``; memory that was given back ends the process when it is read; a shell of a
    ``torch.func`` transform has neither.  ``tensors`` and ``elements`` are the places that ask.

    Two things that look harmless are not.  A result that we touch by ``untyped_storage()`` has a
    python object for its storage from then on; torch counts that as a holder and no longer adds
    gradients in place, so gradients on their way are never asked for theirs.  And the backward of a
    custom Function may go through a graph that its forward has left for it; in a pass of ours
    (``own_pass``) torch is told to retain all graphs.

What is kept for backward
    Reading ``node._saved_self`` unpacks it, which would run the program's saved-tensor hooks and
    compute a checkpoint again.  ``saved`` therefore reads torch's ``SavedTensor`` objects
    (``_raw_saved_self``), which tell what lies in a slot and whether a hook is before it.  Before
    torch 2.13 they do not: ``packing`` knows which nodes were made under hooks.  A storage is known
    by its identity, not its address.

Deep graphs
    torch keeps the Python object of every node that Python touched, and frees a chain of such nodes
    recursively: past about 40,000 the C stack overflows, also long after we are gone.  In graphs
    deeper than 8,192 nodes, every 8,192nd node therefore carries an object in its ``metadata`` that
    releases the nodes below it one by one.
"""
