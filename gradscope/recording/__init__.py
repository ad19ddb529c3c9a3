"""What is remembered while a program runs: who made each node, where, and what it is called.

    recorder ─► torch_call                    one call of torch, as everybody reads it
       ├──────► spans, derived                which call made the node with this sequence number
       ├──────► places, source                where that is, and what stands there
       ├──────► modules, names                in which module call, and what a tensor is called
       └──────► events, remembered, freed     what happened besides making nodes

Knows nothing of graphs as a whole, and nothing of backward calls but that they come.
"""
