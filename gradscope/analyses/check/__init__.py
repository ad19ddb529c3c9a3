"""Checking derivatives: a tape of the program's calls, run again in float64, and finite differences
of each call and of the whole program.

``tape`` is a listener that keeps each call that made history: the function, its arguments, the
random state if it drew numbers. Tensors are kept as slots: a result is only a name for what the
call gives when it is made again, a value from outside (leaf, constant) is referred to, or copied if
small. The object and the version of its storage tell which slot a tensor is, so an in-place change
by something that was not taped is noticed. ``replay`` makes the calls again in order, in float64,
views and in-place changes included; ``single_call`` makes one, and ``leaves`` sees all of them as
one function of the leaves, and has the verdicts on those. Where a
call of torch's own differs, ``single_call`` finds out whether it reads one triangle of a matrix
only; then the matrix, and leaves of its size, are moved within a form that torch may assume
(``call``). ``stale`` puts the node that a custom Function left in the graph beside a fresh run of
it. What has no history is a constant, as it is to autograd: differences of ``x.detach()`` would be
those of another function.
"""
