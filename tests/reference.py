"""The reference of the interface and the pages of the rules, written from docstrings: ``python -m
tests.reference``, a part of ``make docs``, writes docs/api.md and docs/rules/ anew, and tests
compare."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gradscope
from gradscope import api, errors
from gradscope.render.words.findings import sentence
from gradscope.rules import RULES

DOCS = Path(__file__).parent.parent / "docs"
PAGE = DOCS / "api.md"
RULES_HEAD = """# Rules

What `gradscope doctor` can find. `gradscope rule GS303` prints a page.

Generated from the docstrings of `gradscope/rules/` (`make docs`), and compared by the tests; both
programs of each page, with the lines of `-` and with those of `+`, are run.

| code | name | in a sentence |
| --- | --- | --- |
"""

LOOKS = ("trace", "backward", "explain", "check", "memory", "depends", "doctor")
HEAD = """# From Python

Generated from the docstrings (`make docs`), and compared by the tests. Everything that the
[commands](commands.md) answer can be asked from inside a program: at a breakpoint, in a notebook,
in a test. Nothing changes by it: `.grad`, the graph and the random state stay as they are.
`import gradscope` does not import torch.

```python
import gradscope

gradscope.backward(loss).show()  # the graph below a tensor, and the gradient on every edge
with gradscope.record(doctor=True) as run:  # what is wrong with the backward calls of a block
    train(steps=20)
print(*run.findings, sep="\\n\\n")
```

What a look returns is a [Report](#report). What a user can fix is raised as a
[GradscopeError](#errors): what happened, and what to do next.
"""
PARTS: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("Looks at a graph", tuple(getattr(api, name) for name in LOOKS)),
    ("A block of code", (api.record, api.Run)),
    ("A training", (api.watch, api.Row, api.ModuleRow)),
    ("Report", (api.Report, api.LeafGradient, api.Finding, api.load)),
    ("Two reports", (api.diff, api.Difference)),
)
INDENTED = re.compile(r"^(?P<name>[\w, ]+): (?P<text>.*)$")


def page() -> str:
    """The whole page."""
    return "\n".join([HEAD, *(line for part in PARTS for line in _part(*part)), *_errors()])


def _part(title: str, things: tuple[Any, ...]) -> Iterator[str]:
    yield f"## {title}\n"
    for thing in things:
        if inspect.isclass(thing):
            yield from _class(thing)
        else:
            yield from _function(thing, f"gradscope.{thing.__name__}")


def _class(kind: type) -> Iterator[str]:
    yield f"### {kind.__name__}\n"
    yield f"{_text(kind)}\n"
    yield from _fields(kind)
    for name, member in vars(kind).items():
        if name.startswith("_") or isinstance(member, classmethod):
            continue
        if isinstance(member, property):
            yield f"**`.{name}`** {_text(member)}\n"
        elif inspect.isfunction(member):
            yield from _function(member, f".{name}")


def _fields(kind: type) -> Iterator[str]:
    names = getattr(kind, "__struct_fields__", ())
    if names:
        known: dict[str, Any] = {}
        for base in reversed(kind.__mro__):
            written = vars(base).get("__annotations__", {})
            # Where a part of a Report is defined is no name of the interface.
            known |= {
                name: re.sub(r"model\.\w+\.", "", str(kind)) for name, kind in written.items()
            }
        shown = "\n".join(f"{name}: {known[name]}" for name in names)
        yield _code(shown)


def _function(function: Callable[..., Any], name: str) -> Iterator[str]:
    signature = inspect.signature(function)
    kept = [one for one in signature.parameters.values() if one.name != "self"]
    shown = [_parameter(one) for one in kept]
    kinds = [one.kind for one in kept]
    if inspect.Parameter.KEYWORD_ONLY in kinds:
        shown.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
    if inspect.Parameter.POSITIONAL_ONLY in kinds:
        shown.insert(kinds.index(inspect.Parameter.POSITIONAL_ONLY) + 1, "/")
    result = str(signature.return_annotation).strip("'")
    call = f"{name}({', '.join(shown)}) -> {result}"
    if len(call) > 100:
        call = f"{name}(\n    " + ",\n    ".join(shown) + f",\n) -> {result}"
    yield _code(call)
    yield f"{_text(function)}\n"


def _code(text: str) -> str:
    """A block of python, with the quotes that the project's format wants."""
    quoted = text.replace("'", '"')
    return f"```python\n{quoted}\n```\n"


def _parameter(one: inspect.Parameter) -> str:
    told = f"{one.name}: {one.annotation!s}"
    return told if one.default is one.empty else f"{told} = {one.default!r}"


def _text(thing: Any) -> str:
    """A docstring as Markdown: sections become lists."""
    lines: list[str] = []
    in_section = False
    for line in inspect.cleandoc(thing.__doc__ or "").splitlines():
        if line in ("Args:", "Raises:", "Returns:"):
            in_section = True
            lines += [
                {"Args:": "Arguments:", "Raises:": "Raises:", "Returns:": "Returns:"}[line],
                "",
            ]
            continue
        entry = line.strip()
        named = INDENTED.match(entry) if in_section and len(line) - len(entry) == 4 else None
        if named:
            lines.append(f"- `{named['name']}`: {named['text']}")
        elif in_section and entry:
            lines.append(f"- {entry}" if lines and not lines[-1] else f"  {entry}")
        else:
            lines.append(entry)
    text = re.sub(r":\w+:`~?(?:gradscope\.)?([^`]+)`", r"`\1`", "\n".join(lines))
    return re.sub(r"``([^`]+)``", r"`\1`", text)


def _errors() -> Iterator[str]:
    yield "## Errors\n"
    yield "`gradscope.GradscopeError` is the base of all errors that are explained: `.what` says in"
    yield "one line what happened, `.hint` what to do next. Its kinds are in `gradscope.errors`:\n"
    for kind in (
        *(errors.RootError, errors.CaptureError, errors.NoGraph, errors.ReportError),
        *(errors.OutputError, errors.ToolMissing, errors.Fault),
    ):
        first = _text(kind).split("\n\n")[0]
        yield f"- `{kind.__name__}`: {' '.join(first.split())}"
    yield ""


def undocumented() -> set[str]:
    """What is exported and not on the page."""
    told = {thing.__name__ for _, things in PARTS for thing in things} | {"GradscopeError"}
    return set(gradscope.__all__) - told


def rule_pages() -> Iterator[tuple[Path, str]]:
    """The page of each rule, and the table of them all: where it is, and its text."""
    folder, table = DOCS / "rules", RULES_HEAD
    for code, rule in RULES.items():
        text = rule.page()
        yield folder / f"{code}.md", text
        table += f"| [{code}]({code}.md) | {rule.name} | {sentence(text)} |\n"
    yield folder / "README.md", table


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
    for path, text in rule_pages():
        path.write_text(text, "utf-8")
