"""What is left of a program, as text: every bit of its tensors, and the state of torch and python.

Every program of the fuzzer ends with :func:`tell`, and prints the same once more at its exit, when
nobody watches any longer.  Imports nothing of gradscope.
"""

from __future__ import annotations

import atexit
import builtins
import decimal
import faulthandler
import gc
import locale
import logging
import os
import random
import signal
import sys
import threading
import types
import warnings
import weakref
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from tests.fuzz import asking

DEEPEST = 3
LONGEST = 40
_INDICES = {
    **dict.fromkeys((torch.sparse_csr, torch.sparse_bsr), ("crow_indices", "col_indices")),
    **dict.fromkeys((torch.sparse_csc, torch.sparse_bsc), ("ccol_indices", "row_indices")),
}
_SILENT = (types.ModuleType, types.FunctionType, type)


def tell_at_exit(namespace: dict[str, Any]) -> None:
    """Print everything when python ends, modes and patches of the process included."""
    atexit.register(tell, namespace, True)


def tell(namespace: dict[str, Any], at_exit: bool = False) -> None:
    """Print what is in a program's globals; at the exit also what stands around them."""
    title = "== at exit ==" if at_exit else "== at the end =="
    with torch._C.DisableTorchFunction(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lines = [*_Teller().namespace(namespace), *_random_state(namespace)]
        if at_exit:
            lines += _around()
    print(title, *lines, sep="\n")
    sys.stdout.flush()


def _random_state(namespace: Mapping[str, Any]) -> Iterator[str]:
    yield f"torch random {_checksum(torch.get_rng_state().numpy().tobytes())}"
    cuda: Any = torch.cuda
    if cuda.is_initialized():
        for number, state in enumerate(cuda.get_rng_state_all()):
            yield f"cuda {number} random {_checksum(state.numpy().tobytes())}"
    yield f"python random {_checksum(repr(random.getstate()).encode())}"
    # Only where the program has seeded it: it is imported, and then seeded by chance, by torch.
    numpy = namespace.get("numpy")
    if numpy is not None:
        yield f"numpy random {_checksum(repr(numpy.random.get_state()).encode())}"


def _around() -> Iterator[str]:
    """The state of torch and of the interpreter that no variable of the program holds."""
    c = torch._C
    yield f"default {torch.get_default_dtype()} {torch.get_default_device()}"
    yield f"grad {torch.is_grad_enabled()} inference {torch.is_inference_mode_enabled()}"
    for device in ("cpu", "cuda"):
        yield f"autocast {torch.is_autocast_enabled(device)} {torch.get_autocast_dtype(device)}"
    yield f"autocast cache {torch.is_autocast_cache_enabled()}"
    cuda: Any = torch.cuda
    if cuda.is_initialized():
        yield f"synchronisations {cuda.get_sync_debug_mode()}"
        yield f"stream {cuda.current_stream() == cuda.default_stream()}"
    yield f"anomaly {torch.is_anomaly_enabled()} {torch.is_anomaly_check_nan_enabled()}"
    yield f"deterministic {torch.are_deterministic_algorithms_enabled()}"
    yield f"threads {torch.get_num_threads()}"
    stack = torch.overrides._get_current_function_mode_stack()  # type: ignore[no-untyped-call]
    modes = [type(mode).__name__ for mode in stack]
    yield f"modes {modes} {c._len_torch_dispatch_stack()}"
    yield f"functorch {c._functorch.peek_interpreter_stack() is not None}"
    if hasattr(c._autograd, "_top_saved_tensors_default_hooks"):  # from torch 2.7 on
        yield f"default hooks {c._autograd._top_saved_tensors_default_hooks(False) is not None}"
    backward = (torch.autograd.backward, torch.autograd.grad, torch.Tensor.backward)
    yield f"functions {[(one.__module__, one.__qualname__) for one in backward]}"
    yield f"apply {torch.autograd.Function.apply.__qualname__}"
    for name, table in vars(nn.modules.module).items():
        if name.startswith("_global_") and isinstance(table, dict):
            yield f"{name} {len(table)}"
    yield from _interpreter()
    yield from _switches()
    for number in sorted(signal.valid_signals()):
        handler = signal.getsignal(number)
        if handler not in (signal.SIG_DFL, signal.SIG_IGN):
            yield f"on {number} {getattr(handler, '__name__', handler)}"


def _interpreter() -> Iterator[str]:
    """What of python a program may replace."""
    for name in ("excepthook", "displayhook", "unraisablehook", "breakpointhook"):
        yield f"{name} {getattr(sys, name, None) is getattr(sys, f'__{name}__')}"
    yield f"thread hook {threading.excepthook is threading.__excepthook__}"
    yield f"shows warnings by {warnings.showwarning.__module__}"
    yield f"streams {sys.stdout is sys.__stdout__} {sys.stderr is sys.__stderr__}"
    # A package that is imported late, by whoever, may bring a filter for warnings of its own.
    filters = [one[:1] + one[2:] for one in warnings.filters if one[2].__module__ == "builtins"]
    yield f"filters {filters}"
    yield f"importers {[_kind(one) for one in (*sys.meta_path, *sys.path_hooks)]}"
    yield f"path {sys.path} {sys.argv} {Path.cwd()}"
    names = _checksum(repr(sorted(vars(builtins))).encode())
    yield f"builtins {names} {_kind(builtins.__import__)}"
    yield f"tracing {sys.gettrace()} {sys.getprofile()} {gc.isenabled()} {gc.get_threshold()}"
    yield f"collector {len(gc.callbacks)} {gc.get_debug()}"
    alive = [one for one in threading.enumerate() if not one.daemon]
    yield f"python threads {len(alive)}"


def _switches() -> Iterator[str]:
    """The settings that hold for the whole process."""
    # Some packages note where they are installed, or that they were imported, for their children.
    ours = {asking.VARIABLE, "KINETO_LOG_LEVEL", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"}
    variables = sorted(item for item in os.environ.items() if item[0] not in ours)
    yield f"environment {_checksum(repr(variables).encode())}"
    yield f"locale {locale.setlocale(locale.LC_ALL)}"
    yield f"decimals {decimal.getcontext()}"
    yield f"switches {sys.getswitchinterval()} {sys.get_int_max_str_digits()}"
    yield f"bytecode {sys.dont_write_bytecode} {sys.get_coroutine_origin_tracking_depth()}"
    yield f"generators {sys.get_asyncgen_hooks()} {faulthandler.is_enabled()}"
    mask = os.umask(0o77)
    os.umask(mask)
    yield f"umask {mask:o}"
    yield f"logging {logging.root.level} {logging.root.handlers} {logging.getLoggerClass()}"
    yield f"printing {vars(torch._tensor_str.PRINT_OPTS)}"
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        yield f"numpy {numpy.geterr()} {numpy.get_printoptions()}"


def _kind(value: Any) -> str:
    return getattr(value, "__qualname__", type(value).__qualname__)


def _checksum(data: bytes) -> str:
    return f"{zlib.crc32(data):08x}"


class _Teller:
    """Describes values; a storage is numbered when it first comes up, so aliases show."""

    def __init__(self) -> None:
        self._storages: dict[int, int] = {}

    def namespace(self, namespace: Mapping[str, Any]) -> Iterator[str]:
        for name, value in list(namespace.items()):
            if not name.startswith("__") and not isinstance(value, _SILENT):
                yield from self.value(name, value)

    def value(self, name: str, value: Any, depth: int = 0) -> Iterator[str]:
        if isinstance(value, torch.Tensor):
            yield f"{name}: {self.tensor(value)}"
            if not _is_dead_view(value) and (value.is_leaf or value.retains_grad):
                gradient = value.grad
                if gradient is not None and depth < DEEPEST:
                    yield from self.value(f"{name}.grad", gradient, depth + 1)
        elif isinstance(value, nn.Module):
            yield from self.module(name, value)
        elif isinstance(value, torch.optim.Optimizer):
            yield from self.value(f"{name}.state", value.state_dict(), depth)
        elif isinstance(value, weakref.ref):
            yield f"{name}: {'dead' if value() is None else 'alive'}"
        elif isinstance(value, (list, tuple, dict)) and depth < DEEPEST:
            yield f"{name}: {type(value).__name__} of {len(value)}"
            items = value.items() if isinstance(value, dict) else enumerate(value)
            for key, item in list(items)[:LONGEST]:
                yield from self.value(f"{name}[{key!r}]", item, depth + 1)
        elif isinstance(value, (bool, int, float, complex, str, bytes, type(None))):
            yield f"{name}: {value!r}"
        else:
            yield f"{name}: {type(value).__name__}"

    def module(self, name: str, module: nn.Module) -> Iterator[str]:
        tables = [key for key in vars(nn.Module()) if key.endswith("_hooks")]
        for path, part in module.named_modules():
            if isinstance(part, torch.jit.ScriptModule):
                continue
            hooks = [len(getattr(part, key, ())) for key in tables]
            yield f"{name}.{path}: {type(part).__name__} {part.training} {hooks}"
        held = [*module.named_parameters(), *module.named_buffers()]
        for path, tensor in held:
            yield from self.value(f"{name}.{path}", tensor)

    def tensor(self, tensor: torch.Tensor) -> str:
        if _is_dead_view(tensor):
            return f"{type(tensor).__name__} that is a view of a base that was changed"
        graph = f"{tensor.requires_grad} {tensor.is_leaf} {_node(tensor)}"
        hooks = [
            len(getattr(tensor, table, None) or ())
            for table in ("_backward_hooks", "_post_accumulate_grad_hooks")
        ]
        version = "inference" if tensor.is_inference() else tensor._version
        kind = f"{type(tensor).__name__} {tensor.dtype} {tensor.device} {tensor.layout}"
        # Torch keeps the sizes of a jagged tensor in it, once anybody has asked for them.
        own = sorted(name for name in vars(tensor) if not name.startswith("_sym_sizes"))
        return f"{kind} v{version} {graph} hooks {hooks} {own} {self.content(tensor)}"

    def content(self, tensor: torch.Tensor) -> str:
        """Shape, place and bits."""
        if torch._C._functorch.is_functorch_wrapped_tensor(tensor):
            return "of a transform"
        if tensor.is_nested:
            is_jagged = tensor.layout is torch.jagged
            parts = [tensor.values()] if is_jagged else list(tensor.detach().unbind())
            return f"of {[self.content(part) for part in parts]}"
        if tensor.layout is torch.sparse_coo:
            parts = [tensor._indices(), tensor._values()]
            return f"{tuple(tensor.shape)} of {[self.content(part) for part in parts]}"
        if tensor.layout is not torch.strided:
            # A dense copy would lie where the next tensor may come to lie.
            parts = [
                tensor.values(),
                *(getattr(tensor, name)() for name in _INDICES[tensor.layout]),
            ]
            return f"{tuple(tensor.shape)} of {[self.content(part) for part in parts]}"
        place = f"{tuple(tensor.shape)} {tensor.stride()} +{tensor.storage_offset()}"
        if not _has_data(tensor):
            return f"{place} without data"
        if type(tensor).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__:
            inner = getattr(tensor, "inner", None)
            return f"{place} {'' if inner is None else self.content(inner)}"
        if _is_freed(tensor):
            return f"{place} freed"
        return f"{place} in {self._storage(tensor)} {_checksum(_bits(tensor))}"

    def _storage(self, tensor: torch.Tensor) -> int:
        if tensor._is_zerotensor():
            return -1
        address = tensor.untyped_storage().data_ptr()
        return self._storages.setdefault(address, len(self._storages)) if address else -1


def _is_dead_view(tensor: torch.Tensor) -> bool:
    """Whether torch refuses to say how a view is part of a graph."""
    try:
        return tensor.grad_fn is not None and False
    except RuntimeError:
        return True


def _node(tensor: torch.Tensor) -> str:
    return "-" if tensor.grad_fn is None else tensor.grad_fn.name()


def _has_data(tensor: torch.Tensor) -> bool:
    return tensor.device.type in ("cpu", "cuda") and type(tensor).__name__ != "FakeTensor"


def _is_freed(tensor: torch.Tensor) -> bool:
    if tensor._is_zerotensor() or not tensor.numel():
        return False
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    last = tensor.storage_offset() + sum((size - 1) * stride for size, stride in steps)
    return tensor.untyped_storage().nbytes() < (last + 1) * tensor.element_size()


def _bits(tensor: torch.Tensor) -> bytes:
    with torch.no_grad():
        still = tensor.detach().resolve_conj().resolve_neg()
        if still._is_zerotensor():
            return b"zero"
        flat = still.contiguous().reshape(-1)
        return flat.view(torch.uint8).cpu().numpy().tobytes()
