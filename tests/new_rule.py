"""Writes the file of a new rule, with all that is to be filled in: ``make new-rule
CHAPTER=sizes NAME=stuck-relu``."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from gradscope.rules import RULES
from gradscope.rules.register import REMOVED

FOLDER = Path(__file__).parent.parent / "gradscope" / "rules"
CHAPTERS = ("values", "sizes", "missing", "errors", "loop", "derivative", "ranks")
"""In the order of the first digits of their codes."""

SKELETON = '''"""{code} {name}

TODO: in one sentence, what is wrong.

## How it is recognised

TODO: by which numbers of a gradient, the graph, or a step; and what is left alone.

## A program that has it, healed

```diff
 import torch

 x = torch.ones(3, requires_grad=True)
-loss = (x * 2).sum()  # TODO: the line at fault
+loss = (x * 3).sum()
 loss.backward()
```

## When to ignore it

TODO: where it is meant.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.rule import Rule


class {kind}(Rule):
    code = "{code}"
    name = "{name}"

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        for node in facts.graph.nodes:
            if node.short_op == "TODO":
                yield facts.warning(
                    f"{{facts.words(node.id)}} TODO: what is wrong, with its numbers.",
                    node.id,
                    evidence="TODO: what was seen",
                    why="TODO: what follows from that",
                    remedy="TODO: what to write instead",
                )
'''


def write(chapter: str, name: str, folder: Path = FOLDER) -> Path:
    """The new file; its rule has the next free code of the chapter.

    Raises:
        SystemExit: there is no such chapter, the name is no name, or a rule has it.
    """
    if chapter not in CHAPTERS:
        raise SystemExit(f"CHAPTER={chapter}: one of {', '.join(CHAPTERS)}")
    if not re.fullmatch(r"[a-z]+(-[a-z]+)*", name):
        raise SystemExit(f"NAME={name}: small letters, words joined by -, such as stuck-relu")
    path = folder / chapter / f"{name.replace('-', '_')}.py"
    if path.exists() or name in {rule.name for rule in RULES.values()}:
        raise SystemExit(f"NAME={name}: there is a rule of this name")
    first = CHAPTERS.index(chapter) + 1
    codes = {*RULES, *REMOVED}  # one that was removed is never given again
    used = [int(code[2:]) for code in codes if re.fullmatch(rf"GS{first}\d\d", code)]
    kind = "".join(word.capitalize() for word in name.split("-"))
    text = SKELETON.format(code=f"GS{max(used) + 1}", name=name, kind=kind)
    path.write_text(text, "utf-8")
    return path


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit("say both: make new-rule CHAPTER=sizes NAME=stuck-relu")
    print(write(sys.argv[1], sys.argv[2]).relative_to(Path.cwd()))
