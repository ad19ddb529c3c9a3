"""What is remembered while a program runs: who made each node, where, and what it is called.

    recorder ─► recording ─► torch_call               which call made the node with this number
       │            ├──────► places, source           where that is, and what stands there
       │            ├──────► modules, names           in which module call; what a tensor is called
       │            │           └► wrappers, stand_in  around the calls of modules
       │            └──────► events, backward_calls   what happened besides making nodes
       └──────► listener, heard                       whoever wants to hear more: doctor, check;
                                                      also of functions that are no torch calls

Knows nothing of graphs as a whole, and nothing of backward calls but that they come.

Who made a node
    A ``TorchFunctionMode`` sees every torch call.  The autograd sequence number before and after it
    bounds the nodes it made, including the inner nodes of composite operations.  The program
    counter of the first frame outside torch gives line and columns, hence the exact expression; the
    syntax tree gives the variable it was assigned to.  ``autograd.Function.apply`` bypasses the
    mode and is wrapped.  The calls of modules are kept by a wrapper around the one method that all
    go through, as a list of (sequence number, call) changes: time alone tells the call of any node.

    Nothing of the graph is held but the values of small tensors, so the program's memory stays its
    own, and a result is gone when the program lets go of it.  What is known of a tensor is in a
    ``TensorTable``, by identity and weak reference; ``torch.utils.swap_tensors``, which refuses
    tensors that have any, does not count ours.

Nodes that backward made
    Under ``create_graph``, hooks before and after each node note the sequence numbers that its
    backward used up.  So a node made there is traced to the node whose derivative it is, and over
    several passes to the line that started it all.
"""
