"""What a doctor looks at besides the graph: the calls of the program, its leaves, its optimizers.

Each module keeps one sort of observation while the program runs, in bounded memory, and turns it
into plain data when a report is made; :mod:`gradscope.rules` reads that.

    doctor ─► listener ─► values, cuts, changes, ...   what happened between two backward calls
       ├──────► glances                  what is done at each call of torch in a brief look
       ├──────► sampling_policy          is the next call looked at in full, or only briefly?
       ├──────► capture                  the call, and what came of it
       ├──────► step_tracker             from one call to the next, one entry a call
       ├──────► raisers                  who raised, where a call failed?
       ├──────► case_keeper             which call, or last result, is to be reported?
       └──────► report_builder, cases, observed   that call and the run, as a Report

A full look walks the graph, reads the gradient on every edge, and hands every torch call of the
forward pass to all parts of the examination. A brief look does in every step what is needed to
notice trouble, and to report that very step:

- Forward: where each call was made, and whether its result is finite. A result that can only be
  finite where its operands are (a view, a ReLU, a tanh) is not read. Everything else that is told
  of a call (cuts, broadcasts, uses of parameters) is told by its place in the program, so
  it is noted when the program first comes to that place.
- Before backward: the loss. If it is not finite, or if the program has come to a new place, this
  call is looked at in full; the graph is still there.
- In backward: only the operations that can make NaN or infinity of ordinary numbers
  (``capture`` lists those that cannot) and those whose result was not finite. What they
  received, sent and had saved is noted when they do it, so the finding is the one that a full look
  makes. In float16 every operation may overflow, and every one is looked at.
- After backward: the norm of every leaf's gradient, in one reduction; the size of the graph.

In a run of at most five steps every call is looked at in full. In a longer one a call is when it is
one of the first six of the line that calls backward, the 10th, 20th, 40th and so on; when the norm
has jumped to ten times more or less than in any full look before, or is beyond 1e15; and when the
program has come to a new place, with four calls after it. ``--thorough`` looks at all calls in
full. What a brief look does not see is an overflow of float32 in the backward of an operation that
is harmless else; the finding then says that the operation was not seen.

The steps of an optimizer and ``zero_grad`` are not watched call by call: which parameters a step
changed shows in their version numbers. A closure that a step is given is the program's own, and
watched. Nor is what torch's clipping computes of gradients looked at, while calls are in order.

Memory is bounded: numbers of places and sequence numbers are kept for the last 20,000 calls and
more, of very many steps the first and the last 500; of the program's tensors only weak references,
and those leaves that were used, or in an optimizer, by the one reported call. Over 1,000 watched
steps of ``examples/char_gpt`` the process grew by 2 MB after the 200th, and the number of python
objects by 0.5 %.
"""
