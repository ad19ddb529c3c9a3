"""The study behind ``gradscope explain``: derivatives of single nodes, paths, and weights.

study        which tensors or node are meant; what arrives along which way, and for which
  │          element of the root
  ├────► pull              call one node without the engine
  ├────► lockstep          send pieces of a gradient through all, in step; split does so too
  └────► rules             torch's own derivative formulas, and what one node does

A live node is its own derivative: ``node(gradient)`` returns what it sends on, keeps what it saved,
and runs neither the engine nor any hook. ``pull`` calls nodes in this way, and does
after each call what the engine does: it sums over broadcast dimensions and casts. A local Jacobian
is a node called with one element after the other; the rows of the whole Jacobian are pieces that
go through the nodes in order of their ids; the contribution of a path is a gradient handed along
its edges alone. ``is_grads_batched`` is not used, because it would run the program's hooks on
batched tensors. Nodes are refused whose call could be noticed (see explain).

The formulas come from torch's ``derivatives.yaml``, by the class of the node. Notation is a table
of ours, and a test compares it with torch.
"""
