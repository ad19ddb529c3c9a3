"""The study behind ``gradscope backward --by``: what each piece of a gradient brings to a leaf.

study ─► pieces          at which tensors the gradient is taken apart, and into what
  ├────► lockstep        of explain: all pieces go through the graph together, node by node
  └────► batch           samples as one piece, as long as they are apart; what each brings where an
                         operation sums over them

Backward is linear, so a gradient that is written as a sum may be sent summand by summand.  The
pieces go in step: at a leaf all of them are there at once, and only their norms and inner products
are kept.  As in explain, nodes are called one by one, so that no hook of the program runs and no
``.grad`` is touched; where several pieces arrive, torch computes them together, as
``is_grads_batched`` does.  What is refused there is refused here.
"""
