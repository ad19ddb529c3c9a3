"""Looking without being seen: no mode, no random state, no ``.grad`` of the program is changed.

Knows nothing of graphs or of the Report.
"""

from __future__ import annotations

import gc
import random
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch.autograd import profiler
from torch.autograd.grad_mode import _unsafe_preserve_version_counter as preserved_version
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import _disable_current_modes

from gradscope.autograd.elements import has_data
from gradscope.autograd.originals import kinds_of
from gradscope.autograd.tensors import is_functorch_wrapped, is_leaf_tensor, requires_grad
from gradscope.errors import Fault
from gradscope.filesystem import is_installed, is_standard
from gradscope.handlers import HandlersWait, let_pass
from gradscope.patched import Original, by_way_of

# Those of a program that replaces them are for its own calls.
_of_python, _to_python = random.getstate, random.setstate

PACKAGE = str(Path(__file__).parents[1]) + "/"

cuda: Any = torch.cuda
mode_stack: Callable[[], list[TorchFunctionMode]] = torch.overrides._get_current_function_mode_stack
push_mode: Callable[[TorchFunctionMode], None] = torch._C._push_on_torch_function_stack
pop_mode: Callable[[], TorchFunctionMode] = torch._C._pop_torch_function_stack

_record_functions: Callable[[bool], None] = torch.autograd._enable_record_function  # type: ignore[attr-defined]

_set_compiler: Callable[[Any], Any] = getattr(
    getattr(getattr(torch._C, "_dynamo", None), "eval_frame", None),
    "set_eval_frame",
    lambda _: None,
)


class CompilerOff:
    """While it is active, torch.compile does not trace the functions that we call.

    After a graph break it traces every Python function that is called, until the compiled one
    returns: ours are left alone by :func:`gradscope.recording.compiler.keep_out`, but not those of
    torch and Python that ours call.
    """

    def __enter__(self) -> None:
        self._before = _set_compiler(None)

    def __exit__(self, *_: object) -> None:
        _set_compiler(self._before)


dispatch_modes: Callable[[], int] = torch._C._len_torch_dispatch_stack
function_modes: Callable[[], int] = torch._C._len_torch_function_stack


# A torch without CUDA has neither; the program's own call has given the warning that both may give.
_waiting_for_cuda: Callable[[], int] = getattr(torch._C, "_cuda_get_sync_debug_mode", int)
_set_waiting_for_cuda: Callable[[int], None] = getattr(
    torch._C, "_cuda_set_sync_debug_mode", lambda _: None
)


def is_captured() -> bool:
    """Whether CUDA takes down what is computed, to replay it later: nothing of ours may be in it,
    and to wait for a number would end it."""
    return bool(cuda._initialized and cuda.is_current_stream_capturing())


def functions_off() -> AbstractContextManager[Any]:
    """While it is active, what we ask of a tensor reaches neither modes nor subclasses of the user,
    nor a profiler that the program has started; that it waits for CUDA is no error."""
    # Nearly always there is nobody else.
    is_heard = profiler._is_profiler_enabled or dispatch_modes() or _waiting_for_cuda()
    return _FunctionsOff() if is_heard else torch._C.DisableTorchFunction()


functions_on: Callable[[], AbstractContextManager[Any]] = torch._C._EnableTorchFunction
"""While it is active, tensor classes of the program hear of torch calls again."""


@contextmanager
def random_kept() -> Iterator[None]:
    """The random states of python, numpy and torch on the CPU are afterwards as they were."""
    # Not imported for this: who has not imported it draws no numbers from it.
    numpy = getattr(sys.modules.get("numpy"), "random", None)
    ask, put = (getattr(numpy, name, None) for name in ("get_state", "set_state"))
    of_python, of_torch = _of_python(), torch.get_rng_state()
    # Of another generator than the usual one numpy would warn.
    of_numpy = ask(legacy=False) if ask and put else None
    try:
        yield
    finally:
        _to_python(of_python)
        torch.set_rng_state(of_torch)
        if put and of_numpy is not None:
            put(of_numpy)


@contextmanager
def own_pass() -> Iterator[None]:
    """Around a backward pass of ours, or a part of one: the program's own backward functions run in
    it as they do in the program's, and may do so again afterwards, with the same random numbers.

    A backward function may go through a graph of its own, which its forward has left for it.  That
    graph is there for one pass, unless torch is told to retain it.
    """

    def run(engine: Original, roots: Any, gradients: Any, _: Any, *rest: Any, **more: Any) -> Any:
        return engine(roots, gradients, True, *rest, **more)

    # `backward` and `grad` both look this name up when they are called, so that the calls which a
    # custom backward makes inside the pass come by here, too.  Hooks and backward functions of the
    # program run in there, with all that they are used to.
    with random_kept(), by_way_of(torch.autograd, "_engine_run_backward", run), functions_on():
        yield


def fault_of(error: Exception) -> Fault:
    """The fault behind an exception that came while our code ran in the middle of the program.

    Raises:
        Exception: that very exception, where a signal handler of the program has raised it.
    """
    let_pass(error)
    return Fault.of(error)


_records_history: Callable[[bool], None] = torch._C._set_grad_enabled


class Aside:
    """Around what we do in the middle of the program: nobody sees it, it records no history, and
    nothing of it is raised.

    Args:
        note_fault: told of what would have been.
        interrupts, briefly: as for :class:`HandlersWait`.
    """

    def __init__(
        self,
        note_fault: Callable[[Exception], None],
        interrupts: bool = False,
        briefly: bool = True,
    ) -> None:
        self._note_fault = note_fault
        self._waiting = HandlersWait(interrupts, briefly)

    def __enter__(self) -> None:
        self._waiting.__enter__()
        self._off = functions_off()
        self._off.__enter__()
        self._did_record = torch.is_grad_enabled()
        _records_history(False)

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> bool:
        _records_history(self._did_record)
        self._off.__exit__(None, None, None)
        self._waiting.__exit__()
        # Ctrl-C, and the exception with which we end a program, are no faults and go on their way.
        if not isinstance(error, Exception):
            return False
        self._note_fault(error)  # which may raise what is the program's own
        return True


class _Depth(threading.local):
    depth = 0


_unprofiled = _Depth()
"""How many blocks of this thread are in no profile."""


class _FunctionsOff:
    """As ``DisableTorchFunction``, and what is computed inside is in no profile, reaches no
    dispatch mode, and may wait for CUDA."""

    def __enter__(self) -> None:
        self._off = torch._C.DisableTorchFunction()
        self._dispatch = _disable_current_modes() if dispatch_modes() else nullcontext()
        self._off.__enter__()
        self._dispatch.__enter__()
        self._waiting = _waiting_for_cuda()
        if self._waiting:
            _set_waiting_for_cuda(0)
        self._is_profiled = profiler._is_profiler_enabled
        if self._is_profiled:
            _unprofiled.depth += 1
            _record_functions(False)

    def __exit__(self, *_: object) -> None:
        if self._waiting:
            _set_waiting_for_cuda(self._waiting)
        if self._is_profiled:
            _unprofiled.depth -= 1
            # Torch does not tell whether it records already, and these blocks stand in one another.
            _record_functions(not _unprofiled.depth)
        self._dispatch.__exit__(None, None, None)
        self._off.__exit__(None, None, None)


def take_out(mode: TorchFunctionMode) -> list[TorchFunctionMode] | None:
    """Take one mode off the stack, wherever it is; returns those above it, None if it is not on.

    The program may have entered modes of its own since, and not left them: they stay.
    """
    stack = mode_stack()
    if mode not in stack:
        return None
    # Torch has a stack and nothing else: to take one out, those above it have to be lifted off.
    above = stack[stack.index(mode) + 1 :]
    _pop(len(above) + 1)
    _push(above)
    return above


def put_back(mode: TorchFunctionMode, above: list[TorchFunctionMode] | None) -> None:
    """Undo :func:`take_out`, which returned ``above``."""
    if above is not None:
        _pop(len(above))
        _push([mode, *above])


def put_under(mode: TorchFunctionMode) -> None:
    """Put a mode below all others: who leaves one that was entered before takes the uppermost off
    the stack, whichever that is."""
    take_out(mode)
    modes = mode_stack()
    # Of `set_default_device` torch wants to find its own as the lowest.
    default = getattr(torch, "_GLOBAL_DEVICE_CONTEXT", None)
    first = bool(modes) and modes[0] is getattr(default, "device_context", mode)
    _pop(len(modes))
    _push([*modes[:first], mode, *modes[first:]])


@contextmanager
def mode_removed(mode: TorchFunctionMode) -> Iterator[None]:
    """While the block runs, this mode does not see torch calls; others still do."""
    above = take_out(mode)
    try:
        yield
    finally:
        put_back(mode, above)


@contextmanager
def hidden(interrupts_wait: bool = False) -> Iterator[None]:
    """Torch calls in the block reach no mode or tensor class of the program, record no history, and
    leave its random state alone.  Code of the program that is to run as it would by itself, as its
    hooks do, needs :func:`functions_on` inside; what is to have a history, ``enable_grad``.

    Args:
        interrupts_wait: whether Ctrl-C waits for the end of the block, as other signals do.
    """
    # Asking an unused CUDA for its state would start it, which takes memory and seconds.  The state
    # of the CPU is kept below, at a fourth of the cost: two such blocks are in every step.
    devices = range(cuda.device_count() if cuda.is_initialized() else 0)
    forked = torch.random.fork_rng(devices, device_type="cuda") if devices else nullcontext()
    # Of torch 2.6 a mode hears that this makes a device.
    with HandlersWait(interrupts_wait), functions_off(), forked:
        state = torch.get_rng_state()
        # Taken off besides being switched off: `functions_on` inside would wake them again.
        modes = mode_stack()
        _pop(len(modes))
        try:
            # The program may call backward in inference mode, where tensors have no version.
            is_odd = torch.is_inference_mode_enabled()
            versioned = torch.inference_mode(False) if is_odd else nullcontext()
            # Torch warns of a number that is taken out of a tensor with history.
            with versioned, torch.no_grad(), CompilerOff():
                yield
        finally:
            _push(modes)
            torch.set_rng_state(state)


def _pop(count: int) -> None:
    for _ in range(count):
        pop_mode()


def _push(modes: list[TorchFunctionMode]) -> None:
    for mode in modes:
        push_mode(mode)


@contextmanager
def grads_preserved() -> Iterator[None]:
    """Whatever backward does to ``.grad`` of any tensor in the block is undone.

    Not while other threads of the program compute: what they add to a gradient meanwhile would be
    undone as well.  A pass of ours then leaves something in ``.grad`` only where a Function of the
    program's calls backward inside its own.
    """
    if others_compute():
        yield
        return
    with functions_off():
        kept = [_put_away(tensor) for tensor in _with_grad()]
    try:
        yield
    finally:
        with functions_off():
            for put_back in kept:
                put_back()


def others_compute() -> bool:
    """Whether another thread runs code of the program, and does not only wait for work."""
    others = sys._current_frames()
    # Never in a variable: a frame that holds itself keeps all that called it.
    others.pop(threading.get_ident(), None)
    frame: FrameType | None
    for frame in others.values():
        while frame is not None:
            file = frame.f_code.co_filename
            if not (
                file.startswith(("<frozen", PACKAGE)) or is_standard(file) or is_installed(file)
            ):
                return True
            frame = frame.f_back
    return False


def living_tensors() -> list[Any]:
    """Every tensor that python knows of, found among all objects."""
    # Comparing types with a set is what makes it quick to look at some 100,000 objects.
    known = frozenset(kinds_of(torch.Tensor))
    return [thing for thing in gc.get_objects() if type(thing) in known]


def _with_grad() -> list[Any]:
    """Every living tensor whose ``.grad`` a backward pass may set."""
    # A checkpointed function reaches leaves that are in no graph, so it has to be all of them.
    return [
        tensor
        for tensor in living_tensors()
        if not is_functorch_wrapped(tensor)
        and requires_grad(tensor)
        # What is retained is added up by every pass, also by one that leaves the leaves alone.
        and (is_leaf_tensor(tensor) or tensor.retains_grad)
    ]


def _put_away(tensor: Any) -> Callable[[], None]:
    """Take ``.grad`` and the hooks that run when it is set off a tensor; what is returned puts them
    back."""
    grad, content, is_off = tensor.grad, None, True
    try:
        # Some gradients, those of nested tensors, can be taken off a tensor and not be set again.
        tensor.grad = grad
        tensor.grad = None
    except RuntimeError:
        # So it stays where it is, our pass adds to it, and afterwards it gets its numbers back.
        is_off, content = False, grad.detach().clone() if has_data(grad) else None
    # The dict itself is emptied and filled again, and no other put there: the handles by which the
    # program removes its hooks know it by reference.
    hooks = dict(tensor._post_accumulate_grad_hooks or ())
    if hooks:
        # An optimizer may live in such a hook; it would step on a gradient that nobody asked for.
        tensor._post_accumulate_grad_hooks.clear()

    def restore() -> None:
        if is_off:
            tensor.grad = grad
        elif content is not None:
            # The version counts what the program has changed, and must not tell of us.
            with torch.no_grad(), preserved_version(grad):
                grad.copy_(content)
        if hooks:
            tensor._post_accumulate_grad_hooks.update(hooks)

    return restore
