"""The command line: options to a session or a saved file, and its result to a renderer.

    entry ─► commands ─► running ─► running.session ─► Report ─► output ─► terminal / file
                └─► options, memory (the last target)

The only rooms that know click.  Nothing here imports torch.
"""

from gradscope.cli.entry import entry

__all__ = ["entry"]
