"""A training of Lightning that is watched: ``Trainer(callbacks=[Watch("run.jsonl")])``."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any, Literal

from lightning.pytorch.callbacks import Callback

from gradscope.api.watching import watch


class Watch(Callback):
    """:func:`gradscope.watch` from the first step of a ``fit`` to its end, whichever that is.

    Takes what that takes, but for the model: it is the LightningModule.
    """

    def __init__(
        self,
        to: Any,
        *,
        every: int | None = None,
        keep: int = 5,
        by: Literal["term"] | None = None,
    ) -> None:
        self._how: dict[str, Any] = {"to": to, "every": every, "keep": keep, "by": by}
        self._block = ExitStack()

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002
        """The training begins."""
        self._block.enter_context(watch(pl_module, **self._how))

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002
        """It has come to its end."""
        self._block.close()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:  # noqa: ARG002
        """It has come to another, or something else has failed."""
        self._block.__exit__(type(exception), exception, exception.__traceback__)
