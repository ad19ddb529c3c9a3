"""From a live graph and what was recorded to the plain Graph and BackwardPass of a Report.

    roots, initial_gradient, literal           --root and --gradient, text to tensors
    probe ─► edge_gradients, gradient_table    one pass over one graph, measured
      ├────► assemble, forward                 in the user's words, as plain data
      ├────► blame                             why backward failed
      └────► study                             what was asked beyond gradients, and who answers

Knows nothing of how a program is run, or at which moment somebody looks.
"""
