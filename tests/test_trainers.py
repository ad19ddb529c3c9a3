"""``gradscope.watch`` around the real trainers of Lightning and transformers."""

from __future__ import annotations

import contextlib
import importlib
import math
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim import optimizer as optimizer_hooks

import gradscope
from gradscope import Row
from gradscope.model.rows import row_of

pytestmark = pytest.mark.filterwarnings("ignore")

CALLS = 6
"""Batches of an epoch; there are two epochs, and two batches make one step."""

CLIP = 0.25


class Net(nn.Module):
    """Two layers; of one batch the loss is NaN, at another one it raises."""

    def __init__(self, nan_at: int | None, raise_at: int | None) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first = nn.Linear(3, 4)
        self.last = nn.Linear(4, 1)
        self.odd = nan_at, raise_at
        self.calls = 0

    def forward(self, x: torch.Tensor, labels: torch.Tensor | None = None) -> dict[str, Any]:  # noqa: ARG002
        """The loss, as transformers wants it."""
        nan_at, raise_at = self.odd
        if self.calls == raise_at:
            raise ZeroDivisionError
        loss = self.last(torch.tanh(self.first(x))).pow(2).mean()
        loss = loss * (math.nan if self.calls == nan_at else 1.0)
        self.calls += 1
        return {"loss": loss, "logits": loss.detach().reshape(1)}


def data() -> list[dict[str, torch.Tensor]]:
    """Always the same."""
    generator = torch.Generator().manual_seed(1)
    return [
        {"x": torch.randn(3, generator=generator), "labels": torch.zeros(1)} for _ in range(CALLS)
    ]


def by_lightning(net: Net, to: Any, tmp_path: Path) -> list[float]:
    """Two epochs, watched or not."""
    lightning = pytest.importorskip("lightning.pytorch")

    class Module(lightning.LightningModule):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.net = net

        def training_step(self, batch: Any, _: int) -> Any:
            return self.net(**batch)["loss"]

        def configure_optimizers(self) -> Any:
            return torch.optim.AdamW(self.parameters(), lr=1e-2)

    trainer = lightning.Trainer(
        accelerator="cpu",
        max_epochs=2,
        accumulate_grad_batches=2,
        gradient_clip_val=CLIP,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=tmp_path,
    )
    module = Module()
    with nullcontext() if to is None else gradscope.watch(module, every=1, to=to):
        trainer.fit(module, torch.utils.data.DataLoader(data()))  # type: ignore[arg-type]
    return []


def by_transformers(net: Net, to: Any, tmp_path: Path) -> list[float]:
    """Two epochs, watched or not; the norms that transformers has logged."""
    pytest.importorskip("accelerate")
    transformers = pytest.importorskip("transformers")

    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path),
        use_cpu=True,
        num_train_epochs=2,
        per_device_train_batch_size=1,
        gradient_accumulation_steps=2,
        max_grad_norm=CLIP,
        learning_rate=1e-2,
        logging_steps=1,
        logging_nan_inf_filter=False,
        report_to=[],
        save_strategy="no",
        disable_tqdm=True,
    )
    trainer = transformers.Trainer(net, arguments, train_dataset=data())
    with nullcontext() if to is None else gradscope.watch(net, every=1, to=to):
        trainer.train()
    return [entry["grad_norm"] for entry in trainer.state.log_history if "grad_norm" in entry]


TRAINERS = {"lightning": by_lightning, "transformers": by_transformers}
Train = Callable[[Net, Any, Path], list[float]]


@pytest.fixture(scope="module", autouse=True)
def _imported() -> None:
    """Before anyone looks what a test leaves behind: these packages leave some of it."""
    for name in ("lightning.pytorch", "accelerate", "transformers"):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


@pytest.fixture(params=TRAINERS)
def train(request: pytest.FixtureRequest) -> Train:
    """Each trainer; afterwards nothing is left of the watch."""
    return TRAINERS[request.param]


def nothing_is_left() -> bool:
    """Whether torch makes its backward calls and steps as ever."""
    engine = torch.autograd._engine_run_backward  # type: ignore[attr-defined]
    return not (
        hasattr(engine, "__wrapped__")
        or optimizer_hooks._global_optimizer_pre_hooks
        or optimizer_hooks._global_optimizer_post_hooks
    )


def test_two_epochs(train: Train, tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    watched, alone = Net(7, None), Net(7, None)
    norms = train(watched, log, tmp_path)
    assert nothing_is_left()
    train(alone, None, tmp_path)
    for one, other in zip(watched.parameters(), alone.parameters(), strict=True):
        assert str(one) == str(other)
    rows = [row_of(line) for line in log.read_bytes().splitlines()[1:]]
    assert [(row.step, row.call, row.calls) for row in rows] == [
        (step, 2 * step + 2, 2) for step in range(CALLS)
    ]
    assert all(row.applied is not None and not row.applied > CLIP + 1e-6 for row in rows)
    assert max(row.norm or 0.0 for row in rows[:3]) > CLIP
    assert [bool(row.nonfinite) for row in rows] == [step >= 3 for step in range(CALLS)]
    assert [row.call for row in rows if row.finding] == [10]
    # Transformers has its own norm of the whole: ours is the same before clipping.
    for norm, row in zip(norms, rows, strict=bool(norms)):
        assert norm == pytest.approx(row.norm, rel=1e-5, nan_ok=True)
    name = next(iter(rows[0].modules))
    assert name in ("first", "net")


def test_an_exception_in_the_middle(train: Train, tmp_path: Path) -> None:
    rows: list[Row] = []
    with pytest.raises(ZeroDivisionError) as raised:
        train(Net(None, 9), rows.append, tmp_path)
    # While its traceback lives, and with it all that was in its frames.
    assert raised.tb is not None
    assert nothing_is_left()
    assert [row.call for row in rows] == [2, 4, 6, 8, 9]
