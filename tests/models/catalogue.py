"""The models by the package they are of.  Knows nothing of gradscope.

A model is a short program that ends with a ``loss`` of one element.  It downloads nothing, draws
its weights and data itself, and is the same to the last bit whenever it is run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from tests.bare import Plain, bytes_kept, hook, walked
from tests.models import corners, graphs, language, layers, pictures, training, vision

LATEST: list[torch.Tensor] = []
"""The loss of the model that was run last, to be looked at when a program has ended."""

_BEGIN = """
import torch
from torch import nn
torch.manual_seed(0)
"""
"""Of those of torch alone."""

_OF_TORCH = pictures.PROGRAMS | layers.PROGRAMS | training.PROGRAMS | corners.PROGRAMS

_END = f"""
loss.backward()
from {__name__} import LATEST
LATEST[:] = [loss]
"""


@dataclass(frozen=True)
class Model:
    """A program that makes ``loss``."""

    package: str
    name: str
    text: str

    @property
    def program(self) -> str:
        """What every command is given."""
        return self.text.lstrip() + _END

    def loss(self) -> torch.Tensor:
        """Make the loss, without gradscope."""
        namespace: dict[str, Any] = {"__name__": "model"}
        exec(compile(self.text, f"<{self.name}>", "exec", dont_inherit=True), namespace)
        loss = namespace["loss"]
        assert isinstance(loss, torch.Tensor)
        return loss

    def run(self) -> Plain:
        """Make the model twice, once with hooks and once without."""
        alone = self.loss()
        alone.backward()  # type: ignore[no-untyped-call]
        loss = self.loss()
        found = walked([loss])
        hook(found)
        loss.backward()  # type: ignore[no-untyped-call]
        found.leaves = [leaf.grad for leaf in leaves(alone)]
        return found

    def bytes_kept(self) -> int:
        """The size of all storages that the graph keeps for backward."""
        return bytes_kept(lambda: [self.loss()])


def leaves(loss: torch.Tensor) -> list[torch.Tensor]:
    """The leaves of its graph, in the order in which a bare walk comes to them."""
    return [node.variable for node in walked([loss]).nodes if hasattr(node, "variable")]


_PACKAGES = {
    "torch": {name: _BEGIN.rstrip() + text for name, text in _OF_TORCH.items()},
    "transformers": language.PROGRAMS,
    "torch_geometric": graphs.PROGRAMS,
    "kornia": vision.PROGRAMS,
}

MODELS = {
    package: [Model(package, name, text) for name, text in programs.items()]
    for package, programs in _PACKAGES.items()
}
