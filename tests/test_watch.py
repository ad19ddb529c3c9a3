"""``gradscope.watch``: its numbers are those of ``.grad``, and the training stays the same."""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch
from torch import nn
from torch.nn.modules import module as module_hooks
from torch.optim import optimizer as optimizer_hooks
from torch.utils.checkpoint import checkpoint

import gradscope
from gradscope import Row
from gradscope.autograd.isolation import mode_stack
from gradscope.model.rows import line_of, row_of
from gradscope.recording.recorder import Recorder


class Trained(nn.Module):
    """Two layers, one of a list, and a loss."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first = nn.Linear(3, 4)
        self.layers = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])
        self.unused = nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """A loss."""
        y = self.first(x).tanh()
        for layer in self.layers:
            y = layer(y).tanh()
        loss: torch.Tensor = y.pow(2).sum()
        return loss


def norm_of(parameters: Any, scale: float = 1.0) -> float | None:
    """The 2-norm of all gradients together, by torch."""
    norms = [torch.linalg.vector_norm(p.grad).item() for p in parameters if p.grad is not None]
    if not norms:
        return None
    return math.nan if any(math.isnan(one) for one in norms) else math.hypot(*norms) / scale


class Loop:
    """A training: what it does at each backward call and step is kept, to be compared."""

    def __init__(self, every: int = 1) -> None:
        self.model = Trained()
        self.every = every
        self.rows: list[Row] = []
        self.norms: list[float | None] = []
        self.applied: dict[int, float | None] = {}

    def __enter__(self) -> Loop:
        self.block = gradscope.watch(self.model, every=self.every, to=self.rows.append)
        self.block.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self.block.__exit__(*error)

    def backward(self, loss: torch.Tensor, scale: float = 1.0) -> None:
        """A call, and what is then in ``.grad``."""
        loss.backward()  # type: ignore[no-untyped-call]
        self.norms.append(norm_of(self.model.parameters(), scale))

    def stepped(self, *parameters: nn.Parameter) -> None:
        """A step was made: what it used is still in ``.grad``."""
        used = parameters or tuple(self.model.parameters())
        self.applied[len(self.norms)] = norm_of(used)


def batch() -> torch.Tensor:
    return torch.randn(5, 3)


def steps(loop: Loop, count: int = 2, kind: Any = torch.optim.SGD) -> Iterator[int]:
    """Steps of an optimizer, each around what is done in it."""
    optimizer = kind(loop.model.parameters(), lr=0.1)
    with loop:
        for k in range(count):
            optimizer.zero_grad()
            yield k
            optimizer.step()
            loop.stepped()


def plain(loop: Loop) -> None:
    for _ in steps(loop, 3, torch.optim.Adam):
        loop.backward(loop.model(batch()))


def clipped(loop: Loop) -> None:
    optimizer = torch.optim.SGD(loop.model.parameters(), lr=0.1, momentum=0.9)
    with loop:
        for _ in range(3):
            loop.backward(loop.model(batch()))
            nn.utils.clip_grad_norm_(loop.model.parameters(), 0.01)
            optimizer.step()
            loop.stepped()
            optimizer.zero_grad(set_to_none=False)


def accumulating(loop: Loop) -> None:
    optimizer = torch.optim.SGD(loop.model.parameters(), lr=0.1)
    with loop:
        for k in range(6):
            loop.backward(loop.model(batch()) / 3)
            if k % 3 == 2:
                optimizer.step()
                loop.stepped()
                optimizer.zero_grad()


def by_hand(loop: Loop) -> None:
    with loop:
        for _ in range(3):
            loop.model.zero_grad()
            loop.backward(loop.model(batch()))
            with torch.no_grad():
                for one in loop.model.parameters():
                    if one.grad is not None:
                        one.sub_(one.grad, alpha=0.1)


def in_a_closure(loop: Loop) -> None:
    optimizer = torch.optim.LBFGS(loop.model.parameters(), max_iter=2)
    x = batch()

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss: torch.Tensor = loop.model(x)
        loop.backward(loss)
        return loss

    with loop:
        for _ in range(2):
            optimizer.step(closure)  # type: ignore[no-untyped-call]
            loop.stepped()


def two_optimizers(loop: Loop) -> None:
    groups = [list(loop.model.first.parameters()), list(loop.model.layers.parameters())]
    optimizers = [torch.optim.SGD(group, lr=0.1) for group in groups]
    with loop:
        for _ in range(2):
            for optimizer, group in zip(optimizers, groups, strict=True):
                loop.model.zero_grad()
                loop.backward(loop.model(batch()))
                optimizer.step()
                loop.stepped(*group)


def scaled(loop: Loop) -> None:
    optimizer = torch.optim.SGD(loop.model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    with loop:
        for k in range(4):
            optimizer.zero_grad()
            loss = scaler.scale(loop.model(batch()) * (math.inf if k == 1 else 1))
            loop.backward(loss, scaler.get_scale())
            before = loop.model.first.weight.detach().clone()
            scaler.step(optimizer)
            if not torch.equal(before, loop.model.first.weight):
                loop.stepped()
            scaler.update()


def reentrant(loop: Loop) -> None:
    for _ in steps(loop):
        x = batch().requires_grad_()
        y = checkpoint(loop.model.first, x, use_reentrant=True).tanh()
        for layer in loop.model.layers:
            y = checkpoint(layer, y, use_reentrant=True)
        loop.backward(y.sum())


def another_call_before_the_step(loop: Loop) -> None:
    other = Trained()
    for _ in steps(loop):
        loop.backward(loop.model(batch()))
        torch.autograd.grad(loop.model(batch()), list(loop.model.first.parameters()))
        other(batch()).backward()


def scaled_together(loop: Loop) -> None:
    optimizer = torch.optim.SGD(loop.model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    with loop:
        for _ in range(2):
            optimizer.zero_grad()
            losses = [scaler.scale(loop.model(batch())) for _ in range(2)]
            for loss in losses:
                loop.backward(loss, 8.0)
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(loop.model.parameters(), 0.01)
            scaler.step(optimizer)
            loop.stepped()
            scaler.update()


class Counting(torch.overrides.TorchFunctionMode):
    """A mode of the program."""

    def __torch_function__(
        self, func: Any, _types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        return func(*args, **(kwargs or {}))


def troubled(loop: Loop) -> None:
    optimizer = torch.optim.Adam(loop.model.parameters())
    with loop:
        for k in range(18):
            optimizer.zero_grad()
            y = nn.functional.dropout(loop.model(batch()), 0.1)
            if k in (12, 13):  # a line that divides zero by zero
                y = y + (y.detach() - y).sqrt()
            loop.backward(y * (1e4 if k == 15 else 1))
            # Modes that are left after the look has begun, or has ended.
            with Counting(), torch.device("cpu"):
                if k not in (12, 13):
                    optimizer.step()
                    loop.stepped()


def troubled_by_hand(loop: Loop) -> None:
    with loop:
        for k in range(18):
            loop.model.zero_grad()
            loop.backward(loop.model(batch()) * (math.nan if k in (12, 13, 14) else 1))


TRAININGS = [plain, clipped, accumulating, by_hand, in_a_closure, two_optimizers, scaled]
TRAININGS += [reentrant, another_call_before_the_step, scaled_together, troubled, troubled_by_hand]


def norms_are_those_of_grad_bit_for_bit(loop: Loop) -> None:
    numbers = list(itertools.accumulate(row.calls for row in loop.rows))
    assert [row.call for row in loop.rows] == numbers
    assert numbers[-1] == len(loop.norms)
    assert str([row.norm for row in loop.rows]) == str([loop.norms[k - 1] for k in numbers])
    applied = {row.call: row.applied for row in loop.rows if row.applied is not None}
    assert applied == loop.applied
    for row in loop.rows:
        parts = [part.norm for part in row.modules.values() if part.norm is not None]
        assert row.norm == pytest.approx(math.hypot(*parts), nan_ok=True)
        assert row.modules["unused"].none == row.modules["unused"].parameters == 2
    assert not loop.block.problems


@pytest.mark.parametrize("train", TRAININGS, ids=lambda train: train.__name__)
def test_the_norms_are_those_of_grad_and_the_training_is_what_it_is_alone(
    train: Callable[[Loop], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    watched, alone = Loop(), Loop()
    backward, apply = torch.autograd.backward, torch.autograd.Function.__dict__["apply"]
    engine = torch.autograd._engine_run_backward  # type: ignore[attr-defined]
    scale = torch.amp.GradScaler.scale
    torch.manual_seed(1)
    train(watched)
    state = torch.get_rng_state()
    norms_are_those_of_grad_bit_for_bit(watched)
    monkeypatch.setattr(Loop, "__enter__", lambda loop: loop)
    monkeypatch.setattr(Loop, "__exit__", lambda *_: None)
    torch.manual_seed(1)
    train(alone)
    assert torch.equal(state, torch.get_rng_state())
    for one, other in zip(watched.model.parameters(), alone.model.parameters(), strict=True):
        assert torch.equal(one, other)
        assert one._version == other._version
        assert (one.grad is None) == (other.grad is None)
        if one.grad is not None and other.grad is not None:
            assert str(one.grad) == str(other.grad)
            assert one.grad._version == other.grad._version
    assert torch.autograd._engine_run_backward is engine  # type: ignore[attr-defined]
    assert torch.amp.GradScaler.scale is scale
    assert torch.autograd.backward is backward
    assert torch.autograd.Function.__dict__["apply"] is apply
    assert Recorder.active is None
    assert not mode_stack()
    assert not module_hooks._global_forward_pre_hooks
    if train.__name__.startswith("troubled"):
        assert any(row.finding for row in watched.rows)
    assert not optimizer_hooks._global_optimizer_pre_hooks
    assert not optimizer_hooks._global_optimizer_post_hooks


def test_a_step_that_a_scaler_leaves_out_is_told() -> None:
    loop = Loop()
    scaled(loop)
    assert [row.skipped for row in loop.rows] == [False, True, False, False]
    assert [row.scale for row in loop.rows] == [8.0, 8.0, 4.0, 4.0]
    assert loop.rows[1].applied is None
    assert loop.rows[1].nonfinite == 6


@pytest.mark.parametrize(
    ("train", "every", "steps"),
    [
        (plain, 2, [0, 2]),
        (by_hand, 2, [0, 2]),
        (accumulating, 1, [0, 1]),
        (accumulating, 2, [0]),
        (two_optimizers, 1, [0, 0, 1, 1]),
        (plain, 10, [0]),
        (scaled, 1, [0, 1, 2, 3]),
        (scaled, 2, [0, 2]),
    ],
)
def test_all_calls_of_a_step_are_looked_at(
    train: Callable[[Loop], None], every: int, steps: list[int]
) -> None:
    loop = Loop(every)
    train(loop)
    assert [row.step for row in loop.rows] == steps


def test_four_things_that_are_no_number() -> None:
    loop = Loop()
    model = loop.model
    with loop:
        model(batch()).backward()  # `unused` holds None
        model.first(batch()).mul(0).sum().backward()  # the layers keep what they have
        model.zero_grad()
        (model(batch()) * torch.tensor(math.nan)).backward()
        model.unused(torch.zeros(1, 2)).sum().backward()
    told = [(row.none, row.not_reached, row.zero, row.nonfinite) for row in loop.rows]
    assert told[0] == (2, 0, 0, 0)
    assert told[1] == (2, 4, 0, 0)  # zeros are added to what was there
    assert told[2] == (2, 0, 0, 6)
    assert math.isnan(loop.rows[2].norm or 0)
    assert told[3] == (0, 6, 1, 0)
    assert loop.rows[3].parameters == 8


def test_parameters_come_and_go() -> None:
    loop = Loop()
    with loop:
        loop.model(batch()).backward()
        loop.model.first.requires_grad_(False)
        loop.model(batch()).backward()
        loop.model.layers.append(nn.Linear(4, 4))
        loop.model(batch()).backward()
    assert [row.parameters for row in loop.rows] == [8, 6, 8]
    assert list(loop.rows[2].modules) == ["layers.0", "layers.1", "layers.2", "unused"]


def test_the_log_holds_each_row(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    rows: list[Row] = []
    for to in (log, rows.append):
        loop = Loop()
        optimizer = torch.optim.SGD(loop.model.parameters(), lr=0.1)
        torch.manual_seed(1)
        with gradscope.watch(loop.model, every=1, to=to):
            for k in range(3):
                optimizer.zero_grad()
                (loop.model(batch()) * (math.inf if k == 1 else 1)).backward()
                optimizer.step()
                if to is log:  # there already
                    assert len(log.read_bytes().splitlines()) == k + 2
    head, *lines = log.read_bytes().splitlines()
    assert json.loads(head) == {
        "gradscope": gradscope.__version__,
        "every": 1,
        "parameters": 8,
        "layout": 1,
    }
    assert not {"trouble", "finding", "report"} & set(json.loads(lines[0]))
    # The report is beside the log.
    logged = [msgspec.structs.replace(row_of(line), report="") for line in lines]
    assert str(logged) == str(rows)
    assert b'"NaN"' in lines[1]
    with pytest.raises(ValueError, match="step"):
        row_of(b'{"call": 1}')


def test_tensorboard_gets_numbers() -> None:
    told: dict[str, list[tuple[float, int]]] = {}

    class Writer:
        def add_scalar(self, name: str, value: float, step: int) -> None:
            told.setdefault(name, []).append((value, step))

    loop = Loop()
    optimizer = torch.optim.SGD(loop.model.parameters(), lr=0.1)
    with gradscope.watch(loop.model, every=1, to=Writer()):
        for _ in range(2):
            loop.backward(loop.model(batch()))
            optimizer.step()
    assert told["gradscope/norm"] == [(norm, k) for k, norm in enumerate(loop.norms)]
    assert "gradscope/update/layers.1" in told
    assert "gradscope/norm/unused" not in told
    assert told["gradscope/none/unused"] == [(2, 0), (2, 1)]


def refuse(_: Row) -> None:
    """A function that fails."""
    raise OSError(28, "No space left on device")


def test_a_sink_that_fails_is_told_once_and_left_alone(capsys: pytest.CaptureFixture[str]) -> None:
    loop = Loop()
    optimizer = torch.optim.SGD(loop.model.parameters(), lr=0.1)
    with gradscope.watch(loop.model, every=1, to=refuse) as block:
        for _ in range(3):
            loop.backward(loop.model(batch()))
            optimizer.step()
    words = "no more rows are written: OSError: [Errno 28] No space left on device"
    assert block.problems == [words]
    assert capsys.readouterr().err == f"gradscope.watch: {words}\n"


def test_what_a_signal_handler_raises_in_a_sink_is_the_programs() -> None:
    def interrupted(_: Row) -> None:
        signal.raise_signal(signal.SIGUSR1)

    def stop(*_: Any) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGUSR1, stop)
    try:
        with pytest.raises(TimeoutError), gradscope.watch(Trained(), to=interrupted) as block:
            for _ in range(2):
                block._model(batch()).backward()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert not block.problems


def test_blocks_end_in_any_order() -> None:
    engine = torch.autograd._engine_run_backward  # type: ignore[attr-defined]
    for order in itertools.permutations(range(3)):
        loops = [Loop() for _ in order]
        for loop in loops:
            loop.__enter__()
        for left, k in enumerate(order):
            for loop in loops:
                loop.model(batch()).backward()
            loops[k].__exit__(None, None, None)
            assert [len(loops[one].rows) for one in order[: left + 1]] == list(range(1, left + 2))
        assert torch.autograd._engine_run_backward is engine  # type: ignore[attr-defined]


def test_a_traceback_shows_nothing_of_it() -> None:
    loop, alone = Loop(), Loop()
    shown = []
    with loop:
        for model in (loop.model, alone.model):
            loss = model(batch())
            loss.backward()
            try:
                loss.backward()
            except RuntimeError as error:
                shown.append([one.name for one in traceback.extract_tb(error.__traceback__)])
    alone.model(batch()).backward()
    assert shown[0] == shown[1]
    assert shown[0][-2:] == ["backward", "_engine_run_backward"]


def test_a_warning_names_the_line_that_it_names_alone() -> None:
    """Torch counts frames outwards from a hook to the program's own."""

    def train(block: contextlib.AbstractContextManager[Any]) -> list[tuple[str, str, int]]:
        warnings.filterwarnings("always")
        loop.model.first.register_full_backward_hook(lambda *_: None)
        with block, warnings.catch_warnings(record=True) as shown:
            loop.model(batch()).backward()
        return [(str(one.message), one.filename, one.lineno) for one in shown]

    loop = Loop()
    alone = train(contextlib.nullcontext())
    loop = Loop()
    assert alone
    assert train(gradscope.watch(loop.model, every=1, to=loop.rows.append)) == alone
    assert train(contextlib.nullcontext()) == alone


def test_an_optimizer_that_lives_in_backward() -> None:
    norms: list[float] = []
    rows: list[Row] = []
    model = Trained()
    optimizers = {one: torch.optim.SGD([one], lr=0.1) for one in model.parameters()}

    def use(parameter: torch.Tensor) -> None:
        assert parameter.grad is not None
        norms.append(parameter.grad.norm().item())
        optimizers[parameter].step()  # type: ignore[index]
        parameter.grad = None

    for one in model.parameters():
        one.register_post_accumulate_grad_hook(use)  # type: ignore[no-untyped-call]
    with gradscope.watch(model, every=2, to=rows.append):
        for _ in range(3):
            model(batch()).backward()
    assert [row.step for row in rows] == [0, 2]
    assert rows[1].norm == rows[1].applied == pytest.approx(math.hypot(*norms[-6:]))
    assert (rows[1].none, rows[1].update is None) == (2, False)


@pytest.mark.skipif(not torch.distributed.is_available(), reason="torch is built without it")
def test_fsdp_has_others_in_the_place_of_parameters_while_it_computes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from torch.distributed.fsdp import fully_shard

    monkeypatch.setattr(sys, "excepthook", sys.excepthook)  # torch puts its own in its place
    distributed: Any = torch.distributed
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    try:
        loop = Loop()
        fully_shard(loop.model, mesh=distributed.init_device_mesh("cpu", (1,)))
        optimizer = torch.optim.SGD(loop.model.parameters(), lr=0.1)
        with loop:
            for k in range(4):
                loop.model(batch()).backward()
                local: list[Any] = [one.grad for one in loop.model.parameters()]
                norms = [one.to_local().norm().item() for one in local if one is not None]
                loop.norms.append(math.hypot(*norms))
                if k % 2:
                    optimizer.step()
                    optimizer.zero_grad()
    finally:
        distributed.destroy_process_group()
    assert [one.norm for one in loop.rows] == pytest.approx(loop.norms[1::2], rel=1e-6)
    assert [row.applied is None for row in loop.rows] == [False, False]
    assert [(row.step, row.none, row.not_reached) for row in loop.rows] == [(0, 2, 0), (1, 2, 0)]
    assert loop.rows[1].update is not None


def test_a_forked_process_writes_nothing(tmp_path: Path) -> None:
    log, model = tmp_path / "run.jsonl", Trained()
    with gradscope.watch(model, every=1, to=log) as block:
        model(batch()).backward()
        child = os.fork()
        if not child:
            model(batch()).backward()
            block.__exit__(None, None, None)
            os._exit(0)
        os.waitpid(child, 0)
        model(batch()).backward()
    assert len(log.read_bytes().splitlines()) == 3


def test_a_log_can_be_written_again_after_a_fault(tmp_path: Path) -> None:
    class Broken(nn.Linear):
        def named_parameters(self, *args: Any, **kwargs: Any) -> Any:
            if not self.training:
                raise RuntimeError
            return super().named_parameters(*args, **kwargs)

    for _ in range(2):
        model = Broken(3, 4)
        with gradscope.watch(model, every=1, to=tmp_path / "run.jsonl") as block:
            model.eval()
            model(batch()).sum().backward()
        assert "internal error: RuntimeError" in block.problems[0]


def test_what_is_computed_and_put_in_the_place_of_a_parameter_is_left_out(
    recwarn: pytest.WarningsRecorder,
) -> None:
    loop = Loop()
    with loop:
        for layer in loop.model.layers:
            layer._parameters["weight"] = layer._parameters["weight"] * 2  # type: ignore
        for _ in range(2):
            loop.model(batch()).backward(retain_graph=True)
    assert [row.parameters for row in loop.rows] == [6, 6]
    assert not recwarn


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_torch_compile_traces_none_of_it() -> None:
    losses = []
    for watched in (True, False):
        loop = Loop()
        optimizer = torch.optim.SGD(loop.model.parameters(), lr=0.1)
        x = torch.ones(5, 3)

        def train(loop: Loop = loop, optimizer: Any = optimizer, x: Any = x) -> None:
            optimizer.zero_grad()
            loop.model(x).backward()
            optimizer.step()

        with loop if watched else contextlib.nullcontext():
            for _ in range(2):
                torch.compile(train, backend="eager")()
                if watched:
                    loop.norms.append(norm_of(loop.model.parameters()))
        assert [row.norm for row in loop.rows] == loop.norms
        losses.append(loop.model(x))
        torch._dynamo.reset()
    assert torch.equal(*losses)


def test_a_model_that_is_not_the_one_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    loop, other = Loop(), Trained()
    optimizer = torch.optim.SGD(other.parameters(), lr=0.1)
    for seen in (0, 1):
        with gradscope.watch(loop.model, every=1, to=loop.rows.append) as block:
            if seen:
                loop.model(batch()).backward()
            for _ in range(21):
                other(batch()).backward()
                optimizer.step()
        assert len(block.problems) == 1
    told = capsys.readouterr().err
    assert "no backward call has brought this model a gradient: is another one trained?\n" in told
    assert "the last 21 steps were of optimizers that hold no parameter of this model" in told


def entered(model: Any, **how: Any) -> None:
    with gradscope.watch(model, **how):
        pass


def test_bad_input_is_refused_before_anything_begins(tmp_path: Path) -> None:
    net, text = Trained(), tmp_path / "notes.txt"
    text.write_text("mine")
    cases: list[tuple[Any, dict[str, Any], type[Exception], str]] = [
        (nn.ReLU(), {"to": print}, gradscope.GradscopeError, "no parameter of this model requires"),
        (3, {"to": print}, TypeError, "takes a torch.nn.Module, not int"),
        (net, {"to": print, "every": 0}, ValueError, "a whole number from 1 up as every, not 0"),
        (net, {"to": print, "keep": -1}, ValueError, "a whole number from 0 up as keep, not -1"),
        (net, {"to": print, "keep": 1.5}, TypeError, "takes a whole number as keep, not 1.5"),
        (net, {"to": print, "every": "x"}, TypeError, "takes a whole number as every, not 'x'"),
        (net, {"to": 3}, TypeError, "takes to=PATH, a SummaryWriter or a function, not int"),
        (net, {"to": tmp_path}, gradscope.GradscopeError, "Is a directory"),
        (net, {"to": tmp_path / "no" / "x"}, gradscope.GradscopeError, "No such file"),
        (net, {"to": "/dev/full"}, gradscope.GradscopeError, "No space left on device"),
        (net, {"to": text}, gradscope.GradscopeError, "exists, and is no log of gradscope.watch"),
    ]
    for model, how, kind, words in cases:
        with pytest.raises(kind, match=words.replace("(", r"\(").replace(".", r"\.")):
            entered(model, **how)
    assert text.read_text() == "mine"
    log = tmp_path / "run.jsonl"
    with gradscope.watch(net, to=log):
        with pytest.raises(gradscope.GradscopeError, match="is being watched already"):
            entered(net, to=print)
        with pytest.raises(gradscope.GradscopeError, match="written by another gradscope"):
            entered(Trained(), to=log)


def test_an_exception_of_the_block_is_its_own() -> None:
    loop = Loop()
    with pytest.raises(ZeroDivisionError), loop:
        loop.backward(loop.model(batch()))
        1 / 0  # noqa: B018
    assert [row.norm for row in loop.rows] == loop.norms
    with pytest.raises(ZeroDivisionError), Loop() as early:
        1 / 0  # noqa: B018
    assert not early.block.problems


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64, torch.complex64])
def test_gradients_of_any_dtype_and_layout(dtype: torch.dtype) -> None:
    rows: list[Row] = []
    # Torch differentiates no embedding of complex numbers.
    table = nn.Embedding(10, 3, sparse=True, dtype=torch.float32 if dtype.is_complex else dtype)
    layer = nn.Linear(3, 2, dtype=dtype)
    with gradscope.watch(nn.Sequential(table, layer), every=1, to=rows.append):
        layer(table(torch.tensor([1, 1, 4])).to(dtype)).abs().sum().backward()
    wide = torch.complex64 if dtype.is_complex else torch.float32
    wide = torch.float64 if dtype is torch.float64 else wide
    every = [one.grad for one in (*table.parameters(), *layer.parameters())]
    norms = [one.to_dense().to(wide).norm().item() for one in every if one is not None]
    assert rows[0].norm == pytest.approx(math.hypot(*norms), rel=1e-6)


def test_a_step_of_several_calls_is_one_row_with_the_sum_of_its_losses() -> None:
    """Two losses that reach different layers, and two optimizers that use them together."""
    model = nn.ModuleDict({"a": nn.Linear(3, 2), "b": nn.Linear(3, 4)})
    rows: list[Row] = []
    optimizers = [torch.optim.SGD(one.parameters(), lr=0.1) for one in model.values()]
    seen: list[tuple[float, float]] = []
    with gradscope.watch(model, every=1, to=rows.append):
        for _ in range(3):
            losses = [one(batch()).square().mean() for one in model.values()]
            for loss in losses:
                loss.backward()
            norms = [
                math.hypot(*(p.grad.norm().item() for p in one.parameters() if p.grad is not None))
                for one in model.values()
            ]
            seen.append((math.fsum(loss.item() for loss in losses), math.hypot(*norms)))
            for optimizer in optimizers:
                optimizer.step()
                optimizer.zero_grad()
    assert [(row.step, row.calls, row.call) for row in rows] == [(0, 2, 2), (1, 2, 4), (2, 2, 6)]
    for row, (loss, whole) in zip(rows, seen, strict=True):
        assert row.loss == pytest.approx(loss, rel=1e-6)
        assert row.norm == row.applied == pytest.approx(whole, rel=1e-6)
        assert row_of(line_of(row)) == row


def test_what_was_thrown_away_is_no_part_of_a_step() -> None:
    loop = Loop()
    optimizer = torch.optim.SGD(loop.model.parameters(), lr=0.1)
    with loop:
        for k in range(6):
            loop.backward(loop.model(batch()))
            if k % 2:
                optimizer.step()
            optimizer.zero_grad(set_to_none=k % 4 < 2)
    assert [(row.call, row.calls, row.applied is None) for row in loop.rows] == [
        (k + 1, 1, k % 2 == 0) for k in range(6)
    ]


def test_what_another_gradient_was_put_in_the_place_of_is_no_part_of_a_step() -> None:
    """Both have never been written to again: their versions are equal."""
    loop = Loop()
    optimizer = torch.optim.SGD(loop.model.parameters(), lr=0.1)
    with loop:
        for _ in range(2):
            loop.backward(loop.model(batch()))
            for parameter in loop.model.parameters():
                parameter.grad = torch.zeros_like(parameter)
            loop.backward(loop.model(batch()))
            optimizer.step()
            optimizer.zero_grad()
    assert [(row.calls, row.applied is None) for row in loop.rows] == [(1, True), (1, False)] * 2


@pytest.mark.parametrize("calls", [1, 2])
def test_a_step_is_that_of_all_optimizers_that_share_a_model(calls: int) -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))
    optimizers = [torch.optim.SGD(one.parameters(), lr=0.1) for one in model]
    rows: list[Row] = []
    with gradscope.watch(model, every=1, to=rows.append):
        for step in range(3):
            for _ in range(calls):
                model(batch()).square().mean().backward()
            for optimizer in optimizers:
                optimizer.step()
            assert len(rows) == step + 1
            model.zero_grad()
    for row in rows:
        assert row.calls == calls
        assert row.applied == row.norm
        assert None not in [part.update for part in row.modules.values()]


def test_one_optimizer_makes_the_step_that_a_scaler_leaves_out_for_another() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))
    optimizers = [torch.optim.SGD(one.parameters(), lr=0.1) for one in model]
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    rows: list[Row] = []
    with gradscope.watch(model, every=1, to=rows.append):
        for step in range(3):
            scaler.scale(model(batch()).square().mean()).backward()
            if step == 1:
                next(model.parameters()).grad.fill_(math.inf)  # type: ignore[union-attr]
            for optimizer in optimizers:
                scaler.step(optimizer)
            assert len(rows) == step + 1
            scaler.update()
            model.zero_grad()
    assert [row.skipped for row in rows] == [False, True, False]
    assert [part.applied is None for part in rows[1].modules.values()] == [True, False]


@pytest.mark.parametrize(("steps", "rows"), [(7, 7), (45, 23)])
def test_without_every_the_first_steps_have_rows(steps: int, rows: int) -> None:
    model = nn.Linear(3, 1)
    told: list[Row] = []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with gradscope.watch(model, to=told.append):
        for _ in range(steps):
            optimizer.zero_grad()
            model(batch()).sum().backward()
            optimizer.step()
    assert [row.step for row in told] == [k for k in range(steps) if k < 20 or not k % 10]
    assert len(told) == rows


def test_gradients_can_be_swapped_between_backward_and_step() -> None:
    """``module.to()`` then swaps tensors, which torch refuses for those with weak references."""
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    told: list[Row] = []
    torch.__future__.set_swap_module_params_on_conversion(True)
    try:
        with gradscope.watch(model, every=1, to=told.append) as block:
            for _ in range(2):
                model(batch().to(model.weight.dtype)).sum().backward()
                model.double()
                optimizer.step()
    finally:
        torch.__future__.set_swap_module_params_on_conversion(False)
    assert not block.problems
    assert [row.calls for row in told] == [1, 1]
