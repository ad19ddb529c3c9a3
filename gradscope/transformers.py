"""A training of transformers that is watched: ``Trainer(..., callbacks=[Watch("run.jsonl")])``."""

from __future__ import annotations

import weakref
from contextlib import nullcontext
from typing import Any

from transformers import Trainer, TrainerCallback

from gradscope.api.watching import WatchCallback, watch
from gradscope.watching.arrivals import tapped


class Watch(WatchCallback, TrainerCallback):
    """:func:`gradscope.watch` from the first step of ``train`` to its end, whichever that is.

    Takes what that takes, but for the model: it is the trainer's.
    """

    def _prepare(self) -> None:
        block = self._block

        def train(original: Any, trainer: Any, *args: Any, **kwargs: Any) -> Any:
            own = [getattr(one, "_block", None) for one in trainer.callback_handler.callbacks]
            with block if block in own else nullcontext():
                return original(trainer, *args, **kwargs)

        # Of an exception no callback is told, so that this is the only place where all ends meet.
        weakref.finalize(self, tapped(Trainer, "train", train).stop)

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:  # noqa: ARG002
        """The training begins; once more where a smaller batch is tried."""
        self._block.close()
        self._block.enter_context(watch(kwargs["model"], **self._how))
