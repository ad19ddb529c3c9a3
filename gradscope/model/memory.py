"""What autograd keeps alive for backward, one record a storage; plain data like the Report.

Node and leaf numbers are those of the Report's graph.
"""

from __future__ import annotations

from typing import Literal

from gradscope.model.plain import Struct

Holding = Literal["activation", "parameter", "buffer", "input", "attribute", "packed"]
"""Why a storage is there: made on the way; a leaf of the graph or a parameter of a module; a buffer
of a module; a tensor without history that a variable of the program holds; kept by a custom
Function as a plain attribute of its ``ctx``; packed by a saved-tensor hook of the program."""


class KeptStorage(Struct, frozen=True):
    """One storage that backward keeps alive, counted once however many tensors look into it.

    ``bytes`` is the size of the whole storage, ``used`` at most so many of them are in a tensor
    that was saved; ``shape`` and ``dtype`` are those of the largest one.
    ``missing`` are bytes of what was saved that are not there now, because the program has given
    them back; while backward runs they may be.
    ``holders`` are the nodes that saved it and the name of the slot in each, in the order in which
    the program made them.  ``name`` is what the program calls a parameter, buffer or input.
    """

    bytes: int
    used: int
    shape: tuple[int, ...]
    dtype: str
    device: str
    holding: Holding
    holders: tuple[tuple[int, str], ...]
    name: str = ""
    missing: int = 0


class Twin(Struct, frozen=True):
    """The same values twice: ``kept[copy]`` equals ``kept[of]``, or the leaf, rounded to its dtype.

    Exactly one of ``of`` (an index of ``kept``) and ``leaf`` (an index of the graph's leaves) is
    set.
    """

    copy: int
    of: int | None = None
    leaf: int | None = None


class Hidden(Struct, frozen=True):
    """A saved tensor that was not counted, and why: the hook it is behind, or its kind.

    ``slot`` is empty where torch does not tell whether the node saved anything; ``reason`` then
    says what the node is for.
    """

    node: int
    slot: str
    reason: str
    recomputed: bool = False


class Peak(Struct, frozen=True):
    """The most memory that was allocated on one device while backward ran.

    ``bytes`` is None where it was not measured, and ``reason`` then says why.  ``before`` was
    allocated when backward began.  ``reached``: the peak fell into backward; otherwise ``bytes``
    is an earlier peak, which backward stayed below.
    """

    device: str = ""
    bytes: int | None = None
    before: int = 0
    reached: bool = False
    reason: str = ""


class Memory(Struct, frozen=True):
    """Everything kept for one graph, largest first; what is there twice; what could not be counted.

    ``freed`` are nodes whose saved tensors an earlier backward call had freed already.
    """

    kept: tuple[KeptStorage, ...]
    twins: tuple[Twin, ...] = ()
    hidden: tuple[Hidden, ...] = ()
    freed: tuple[int, ...] = ()
    peaks: tuple[Peak, ...] = ()

    def total(self, *holdings: Holding) -> int:
        """The bytes of all storages held in these ways."""
        return sum(one.bytes for one in self.kept if one.holding in holdings)
