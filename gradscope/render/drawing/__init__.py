"""What the drawings of a graph share: what is shown, in which order, with which words and sizes.

All formats that fold draw the same ``View``, so ``--depth``, ``--focus``, ``--path`` and ``--all``
mean the same in each, and the counts on closed items add up to the graph.

On the terminal rows are plain strings laid out by ``words.table``; rich only colours them, because
its tables take milliseconds a row.  The gradient that enters a closed item is the upstream gradient
at the nodes where edges cross its border: where two edges meet in one node inside, their sum.  A
strip shows the same for every round.  The zeros in a table of parameters come from the values of
small gradients and the histograms of large ones, so those formats ask for histograms.
"""
