"""The numbers behind a graph: derivatives of single nodes, paths and their contributions, and the
weights of a vector-Jacobian product.

Plain data like the rest of the Report, whose nodes, edges, leaves and roots it names by their
indices; gradients that the Report's own pass holds are not repeated.
"""

from __future__ import annotations

from gradscope.model.plain import (
    EdgeId,
    GradientInfo,
    LeafId,
    NodeId,
    Norm,
    Number,
    RootId,
    RuleId,
    Struct,
)


class Formula(Struct, frozen=True):
    """One entry of torch's ``derivatives.yaml``: for these arguments of the function, this C++
    expression, in which ``grad`` is the upstream gradient."""

    arguments: tuple[str, ...]
    text: str


class DerivativeRule(Struct, frozen=True):
    """How nodes of one class compute their gradients.

    ``function`` is the schema of the forward function.  Without ``formulas``, ``why`` says where
    the derivative is, or why it is not known.
    """

    op: str
    function: str = ""
    formulas: tuple[Formula, ...] = ()
    why: str = ""


class Listing(Struct, frozen=True):
    """Source text of a custom Function's own backward: where it begins, and its lines."""

    file: str
    line: int
    lines: tuple[str, ...]


class Local(Struct, frozen=True):
    """The Jacobian of one output of a node by the operand at one edge.

    ``shape`` is (elements of the output, elements of the operand).  ``diagonal``: each element of
    the output depends on its own element of the operand only, and ``values`` are these derivatives
    in row-major order; otherwise ``values`` is the whole matrix, row by row.
    """

    edge: EdgeId
    output: int
    shape: tuple[int, int]
    values: tuple[Number, ...]
    diagonal: bool = False


class ChainStep(Struct, frozen=True):
    """What one node does with the gradient it receives.

    ``rule`` indexes the explanation's rules.  ``arguments`` names the forward function's argument
    behind each input slot, "" where that is not known.  ``constants`` are the numbers among what
    the node saved, ``names`` what the program calls the tensors among it.  ``why`` says what
    prevented its local derivatives from being computed.
    """

    node: NodeId
    rule: RuleId
    arguments: tuple[str, ...] = ()
    locals: tuple[Local, ...] = ()
    constants: tuple[tuple[str, Number], ...] = ()
    names: tuple[tuple[str, str], ...] = ()
    listing: Listing | None = None
    why: str = ""


class Path(Struct, frozen=True):
    """One way from a root to a leaf, by its edges, and what arrives along it alone."""

    root: RootId
    edges: tuple[EdgeId, ...]
    contribution: GradientInfo


class End(Struct, frozen=True):
    """A tensor whose gradient is explained, and the paths to it, those that bring most first.

    It is an output of a node, under the name that the reader knows; ``leaf`` is its index where it
    is a leaf.  ``count`` is the number of all paths, "Infinity" beyond all floats; None where no
    gradient was followed.  ``rest`` is what the paths that are not listed bring together, None
    where all are.  ``why`` says what prevented them from being followed.
    """

    node: NodeId
    output: int
    name: str
    leaf: LeafId | None = None
    count: Norm | None = None
    paths: tuple[Path, ...] = ()
    rest: GradientInfo | None = None
    why: str = ""


class Term(Struct, frozen=True):
    """One element of a root, by its position in row-major order, the weight it was given, and its
    derivatives by the explanation's ends, one each."""

    root: RootId
    element: int
    weight: Number
    derivatives: tuple[GradientInfo, ...]


class Weights(Struct, frozen=True):
    """The vector-Jacobian product, written out: the gradient of an end is the sum over all terms of
    weight times derivative.

    ``is_given``: whether there was a gradient; the weights of a Jacobian alone say nothing.
    ``total`` counts the elements of all roots; of many there are no ``terms``.  ``why`` says what
    prevented it.
    """

    total: int
    terms: tuple[Term, ...] = ()
    why: str = ""
    is_given: bool = True


class Explanation(Struct, frozen=True):
    """The answer of ``gradscope explain``.

    ``ends`` are the tensors it is about, ``asked`` whether the reader chose them; instead, ``node``
    is set where a single node was asked for.  ``jacobian``: the whole matrices were asked for.
    ``everything``: leave nothing out.
    """

    steps: tuple[ChainStep, ...]
    rules: tuple[DerivativeRule, ...]
    ends: tuple[End, ...] = ()
    weights: Weights | None = None
    node: NodeId | None = None
    asked: bool = False
    jacobian: bool = False
    everything: bool = False
