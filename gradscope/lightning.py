"""A training of Lightning that is watched: ``Trainer(callbacks=[Watch("run.jsonl")])``."""

from __future__ import annotations

from typing import Any

from lightning.pytorch.callbacks import Callback

from gradscope.api.watching import WatchCallback, watch


class Watch(WatchCallback, Callback):
    """:func:`gradscope.watch` from the first step of a ``fit`` to its end, whichever that is.

    Takes what that takes, but for the model: it is the LightningModule.
    """

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002
        """The training begins."""
        self._block.enter_context(watch(pl_module, **self._how))

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002
        """It has come to its end."""
        self._block.close()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:  # noqa: ARG002
        """It has come to another, or something else has failed."""
        self._block.__exit__(type(exception), exception, exception.__traceback__)
