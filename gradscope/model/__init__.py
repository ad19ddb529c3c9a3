"""The wall in the middle of the house: plain data, strictly typed, saved as JSON.

``report`` is what one look found; ``observations``, ``studies`` and ``explanation`` are the answers
that a report may carry besides.  ``plain`` has the bricks of all of them.  ``invariants`` says what
is always true of a report, with ``requirements`` and ``answers``; ``storage`` writes and reads it.
``request`` is what a run is asked for.  Knows of nothing else in the package but errors and
escaping, and never of torch.
"""
