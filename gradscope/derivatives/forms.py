"""The forms that torch assumes a matrix to have, as ``eigh`` does and ``cholesky_solve``: it reads
one triangle only, and its backward counts on what the other one should hold.  Such a gradient is
right for steps that keep the form.

Knows nothing of calls or of how derivatives are compared.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch

Part = Callable[[torch.Tensor], torch.Tensor]
"""Takes matrices, and gives them with only a part left or made to have a form."""


class Form(NamedTuple):
    """A form of matrices: its name for real ones and for complex ones, and the projection on it."""

    of_real: str
    of_complex: str
    project: Part

    def name(self, tensor: torch.Tensor) -> str:
        """What it is called for a tensor."""
        return self.of_complex if tensor.is_complex() else self.of_real

    def has(self, tensor: torch.Tensor) -> bool:
        """Whether matrices have the form, but for rounding."""
        return torch.allclose(self.project(tensor), tensor)


FORMS = (
    Form("symmetric", "Hermitian", lambda matrix: (matrix + matrix.mH) / 2),
    Form("lower triangular", "lower triangular", torch.tril),
    Form("upper triangular", "upper triangular", torch.triu),
)

TRIANGLES: tuple[Part, ...] = (
    lambda matrix: torch.triu(matrix, 1),
    lambda matrix: torch.tril(matrix, -1),
)
"""What lies above the diagonal, and what lies below it; torch reads the one or the other."""


def is_square(tensor: torch.Tensor) -> bool:
    """Whether a tensor holds matrices that could have one of the forms."""
    return tensor.dim() >= 2 and tensor.shape[-1] == tensor.shape[-2] > 1


def part_of(direction: torch.Tensor, part: Part, like: torch.Tensor) -> torch.Tensor:
    """A part of a direction, in which complex numbers are a last dimension of two, for a tensor
    such as this one."""
    if not like.is_complex():
        return part(direction)
    return torch.view_as_real(part(torch.view_as_complex(direction)).resolve_conj())
