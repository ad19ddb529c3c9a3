"""``python -m tests.fuzz.files``: programs on stdin, run under commands in one warm process.

Takes ``{name: [program, [command, ...]]}`` as JSON, a command being a list of words, and prints
``{name: [what differs, ...]}``.  In a process of its own, because it forks, and pytest has threads.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.fuzz import runs
from tests.fuzz.trial import Place, tried

Commands = Sequence[tuple[str, ...]]
Asked = Mapping[str, tuple[str, Commands]]
"""Programs by name, and the commands they are run under."""


def in_turn(programs: Asked) -> dict[str, tuple[str, Commands]]:
    """Every third command of each program: of one the first, the fourth and so on, of the next the
    second and so on."""
    return {
        name: (text, [one for at, one in enumerate(commands) if (at - number) % 3 == 0])
        for number, (name, (text, commands)) in enumerate(programs.items())
    }


def main() -> None:
    """Answer what is on stdin."""
    asked = json.load(sys.stdin)
    runs.warm_up()
    answer = {}
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        for name, (text, commands) in asked.items():
            words = [tuple(one) for one in commands]
            result = tried(text, Place(Path(folder)), words, is_known=True)
            found = [f"gradscope {' '.join(d.command)}: {d.kind}\n{d.detail}" for d in result.found]
            answer[name] = [result.unusable, *found] if result.unusable else found
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
