"""Which node made the tensor that a name means, of a graph that was walked."""

from __future__ import annotations

from gradscope.autograd.calls import edge_of
from gradscope.autograd.tensors import requires_grad
from gradscope.errors import RootError
from gradscope.graphing.probe import Probe
from gradscope.graphing.roots import MAX_LISTED, named_tensor
from gradscope.recording.names import Scopes
from gradscope.words import either, listed


def made_tensor(name: str, probe: Probe, scopes: Scopes) -> tuple[int, int] | None:
    """The node, by its number, and the output of it that a variable holds or once held, also one of
    a function that has returned; or ``#3``, a node itself.  None where the graph has none.

    Raises:
        RootError: when such a variable held several, one after the other.
    """
    graph, index = probe.graph, probe.walked.index
    tensor = named_tensor(name, scopes)
    if tensor is not None and requires_grad(tensor):
        node, output = edge_of(tensor)
        if node in index:
            return index[node], output
    named = [one.id for one in graph.nodes if name in (one.variable, f"#{one.id}")]
    if not named or tensor is not None:
        return None
    if len(named) > 1:
        them = listed((f'"#{node}"' for node in named), MAX_LISTED)
        where = either("the numbers behind # in the tree", "ids of its nodes")
        raise RootError(
            f"{len(named)} tensors were called {name}", f"name one of them: {them} ({where})"
        )
    outputs = {edge.output for edge in graph.edges if edge.target == named[0]}
    return named[0], min(outputs, default=0)
