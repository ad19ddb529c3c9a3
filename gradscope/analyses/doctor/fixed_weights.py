"""Attributes of a module that are written as its weights are, and are no Parameters, so that they
never learn: drawn by an initialiser for weights, or a factor of nothing but zeros.
"""

from __future__ import annotations

import dis
from types import CodeType

import torch
from torch import nn

from gradscope.analyses.doctor.oddity_finder import FinderContext, OddityFinder
from gradscope.autograd.elements import is_small
from gradscope.autograd.tensors import TensorTable, requires_grad
from gradscope.model.observations import OddityKind
from gradscope.recording.source import Site
from gradscope.recording.torch_call import TorchCall

_INITIALISERS = str(nn.init.__file__)
_OF_WEIGHTS = ("xavier", "kaiming")

MAX_KNOWN = 1_000
"""Tensors that are remembered."""

LARGEST = 100_000
"""Elements of a factor that are read."""


class FixedWeights(OddityFinder):
    """Such attributes that forward computes with."""

    def __init__(self, context: FinderContext) -> None:
        super().__init__(context)
        self._drawn: TensorTable[bool] = TensorTable(MAX_KNOWN)
        self._read: TensorTable[int] = TensorTable(MAX_KNOWN)

    def note(self, call: TorchCall) -> None:
        """Look at one call."""
        code, above = call.frame.f_code, call.frame.f_back
        names = [code.co_name, "" if above is None else above.f_code.co_name]
        if call.function.startswith(_OF_WEIGHTS) or (
            code.co_filename == _INITIALISERS and any(one.startswith(_OF_WEIGHTS) for one in names)
        ):
            for drawn in call.results:
                self._drawn[drawn] = True
            return
        running = self._recorder.modules.running if torch.is_grad_enabled() else None
        if running is not None and running[0].training:
            for tensor in call.operands[:3]:
                if not (requires_grad(tensor) or tensor.is_inference()):
                    self._use(call, running[0], tensor)

    def _use(self, call: TorchCall, module: nn.Module, tensor: torch.Tensor) -> None:
        held = {**module._buffers, **vars(module)} if tensor in self._drawn else vars(module)
        # What an attribute shows may be a Parameter that is frozen.
        if isinstance(tensor, nn.Parameter):
            return
        is_factor = call.function in ("mul", "rmul") and call.in_graph and tensor.dim() == 1
        if tensor not in self._drawn and not is_factor:
            return
        name = next((name for name, one in held.items() if one is tensor), "")
        if name and tensor in self._drawn:
            self._report("weight drawn", module, name, call)
        # Looked at anew only where it has changed.
        elif name and self._read.get(tensor) != tensor._version and is_small(tensor, LARGEST):
            if tensor.numel() > 1 and not bool(tensor.any()):
                self._report("zero factor", module, name, call)
            else:
                self._excuse("zero factor", call.place)
                self._read[tensor] = tensor._version

    def _report(self, kind: OddityKind, module: nn.Module, name: str, call: TorchCall) -> None:
        site = _assignment(type(module).__init__, name)
        self._tell(kind, call.place, name=f"{type(module).__name__}.{name}", site=site)


def _assignment(function: object, name: str) -> Site | None:
    """The line in ``__init__`` that gives a module this attribute, or names it."""
    code: CodeType | None = getattr(function, "__code__", None)
    for one in () if code is None else dis.get_instructions(code):
        line = one.positions.lineno if one.positions is not None else None
        if code and line and one.argval == name and one.opname in ("STORE_ATTR", "LOAD_CONST"):
            return Site(code, -line)
    return None
