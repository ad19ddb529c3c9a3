"""What the user wrote: the exact expression, line and assigned variable of one bytecode
instruction; what a person calls its file, or the cell of a notebook.

Notebooks and IPython compile each cell under a name that nobody reads, such as
``/tmp/ipykernel_7/1234.py``; the shell knows which cell that was.  IPython is asked only where the
program has imported it.  Pure reading of code objects and source text; knows nothing of torch or of
graphs.
"""

from __future__ import annotations

import ast
import contextlib
import io
import linecache
import opcode
import os
import re
import sys
import textwrap
import tokenize
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from types import CodeType

from gradscope.filesystem import here
from gradscope.model.report import Origin, checksum

_BEGIN_LOOPS = [opcode.opmap[name] for name in ("GET_ITER", "FOR_ITER")]

TextSpan = tuple[int, int, int, int]
"""First line, first column, last line, last column; columns are UTF-8 byte offsets, as in
``ast``."""

_Position = tuple[int | None, int | None, int | None, int | None]
"""First and last line, first and last column, as a code object tells them."""


@dataclass(frozen=True)
class Site:
    """A place in running code: a code object and the index of an instruction in it, or, where
    negative, a line: that of a decorator, or of ``def``."""

    code: CodeType
    lasti: int


@dataclass
class _File:
    """One source file, its text in lines and what its statements say of the spans in them."""

    lines: list[str]
    variables: dict[TextSpan, str] = field(default_factory=dict)
    statements: dict[TextSpan, TextSpan] = field(default_factory=dict)
    """Spans that stand for a statement: ``x[0]`` in ``x[0] = 3`` means all of it, and what a loop
    or a ``with`` does when it begins is shown as its first line."""
    grad_reads: list[tuple[int, str]] = field(default_factory=list)
    """Lines that read ``PATH.grad``, with the path."""
    iterated: dict[TextSpan, TextSpan] = field(default_factory=dict)
    """The loop around each expression that a ``for`` goes through."""

    @cached_property
    def checksum(self) -> int:
        """That of its text; see :func:`gradscope.model.report.checksum`."""
        return checksum("".join(self.lines))


class Sources:
    """Source text by file name, each file parsed once, when it is first asked about.

    Args:
        texts: source of pseudo files that :mod:`linecache` does not know: ``{"<string>": code}``.
        directory: files below it are named relative to it.
        codes: what the texts were compiled to.  What the program executes from a text of its own
            goes by the same file name, and its lines are not those of the program.
    """

    def __init__(
        self,
        texts: dict[str, str] | None = None,
        directory: str = "",
        codes: Iterable[CodeType] = (),
    ) -> None:
        self._texts = {COMMAND: "", **(texts or {})}
        self._own = set(with_inner(codes))
        self._directory = directory or here()
        self._files: dict[str, _File] = {}
        self._positions: dict[int, list[_Position]] = {}
        self._codes: list[CodeType] = []

    def origin(self, site: Site) -> Origin:
        """The place as the Report keeps it; without source text only file, line and function are
        known."""
        span = self.span(site)
        file = self._file(site.code)
        name = self.display_name(site.code.co_filename)
        function = site.code.co_qualname
        if span is None:
            return Origin(name, max(site.code.co_firstlineno, -site.lasti), function=function)
        shown = file.statements.get(span, span)
        expression = _without_comments(text_of(file.lines, shown))
        return Origin(name, shown[0], expression, file.variables.get(span, ""), function)

    def is_statement(self, site: Site) -> bool:
        """Whether the shown text is a statement, which says itself what it assigns to."""
        span = self.span(site)
        return span is not None and span in self._file(site.code).statements

    def operands(self, site: Site) -> tuple[str, ...]:
        """The names in the site's expression, longest first: ``self.w`` before ``self``."""
        span = self.span(site)
        if span is None:
            return ()
        return names_in(text_of(self._file(site.code).lines, span))

    def lines_of(self, code: CodeType) -> tuple[int, list[str]]:
        """The text of a function from its ``def`` line on, with that line's number; no lines where
        the text is not at hand."""
        lines = self._file(code).lines
        last = max((line for _, _, line in code.co_lines() if line), default=0)
        first = code.co_firstlineno  # that of its first decorator
        while first < last <= len(lines) and lines[first - 1].lstrip().startswith("@"):
            first += 1
        text = textwrap.dedent("".join(lines[first - 1 : last]))
        return first, text.splitlines()

    def grad_reads(self, code: CodeType) -> list[tuple[int, str]]:
        """The lines of this code that read the ``.grad`` of something, and of what: (7, "b")."""
        lines = [line for _, _, line in code.co_lines() if line]
        first, last = min(lines, default=0), max(lines, default=0)
        return [read for read in self._file(code).grad_reads if first <= read[0] <= last]

    def span(self, site: Site) -> TextSpan | None:
        """Where the instruction's expression stands, or None when the code carries no positions."""
        if site.lasti < 0:
            return self._line(site.code, -site.lasti)
        # All positions of a code object are read at once: they can only be had in order.
        positions = self._positions.get(id(site.code))
        if positions is None:
            positions = self._positions[id(site.code)] = list(site.code.co_positions())
            self._codes.append(site.code)  # an id is only good while its object lives
        # One for each unit of two bytes, and `lasti` counts bytes.
        if site.lasti // 2 >= len(positions):
            return None
        first, last, start, end = positions[site.lasti // 2]
        # `python -X no_debug_ranges` compiles without columns.
        if first is None or last is None or start is None or end is None:
            return None
        span = first, start, last, end
        # In newer Pythons a loop begins at what it goes through, which is an expression, too.
        if site.code.co_code[site.lasti // 2 * 2] in _BEGIN_LOOPS:
            return self._file(site.code).iterated.get(span, span)
        return span

    def _line(self, code: CodeType, line: int) -> TextSpan | None:
        """All of a line but its margins and comments."""
        lines = self._file(code).lines
        if not 1 <= line <= len(lines):
            return None
        raw = lines[line - 1].encode()
        text = raw.partition(b"#")[0].rstrip()
        return line, len(raw) - len(raw.lstrip()), line, len(text)

    def display_name(self, filename: str) -> str:
        """The file as a person would name it, or the number of a notebook's cell."""
        return display_name(filename, self._directory)

    def checksums(self, names: Collection[str]) -> dict[str, int]:
        """Those of the files with these shown names whose text is at hand."""
        read = ((self.display_name(name), file) for name, file in self._files.items())
        return {name: file.checksum for name, file in read if file.lines and name in names}

    def _file(self, code: CodeType) -> _File:
        filename = code.co_filename
        if filename in self._texts and code not in self._own:
            return _File([])
        known = self._files.get(filename)
        if known is None:
            text = self._texts.get(filename)
            lines = text.splitlines(True) if text is not None else linecache.getlines(filename)
            known = self._files[filename] = _indexed(tuple(lines))
        return known


def text_of(lines: list[str], span: TextSpan) -> str:
    """The exact source text of a span, with its line breaks; "" when the lines are not there."""
    first, start, last, end = span
    if first < 1 or last > len(lines):
        return ""
    # Columns count bytes, so a line is cut as bytes.
    raw = [line.encode() for line in lines[first - 1 : last]]
    raw[-1] = raw[-1][:end]
    raw[0] = raw[0][start:]
    return b"".join(raw).decode(errors="replace")


def _without_comments(expression: str) -> str:
    """Comments between the lines of an expression are no part of it, and could not be told from it
    where it is shown on one line."""
    if "\n" not in expression or "#" not in expression:
        return expression
    lines = expression.split("\n")
    with contextlib.suppress(tokenize.TokenError, SyntaxError):
        # The parentheses keep the tokenizer from asking for indentation.
        for token in tokenize.generate_tokens(io.StringIO(f"(\n{expression}\n)").readline):
            if token.type == tokenize.COMMENT:
                row, column = token.start[0] - 2, token.start[1]
                lines[row] = lines[row][:column].rstrip()
    return "\n".join(lines)


def _span(node: ast.expr | ast.stmt) -> TextSpan:
    return (
        node.lineno,
        node.col_offset,
        node.end_lineno or node.lineno,
        node.end_col_offset or node.col_offset,
    )


def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


@lru_cache(maxsize=256)
def _indexed(lines: tuple[str, ...]) -> _File:
    # Shared by all who look in this process: to parse a file takes longer than to look at its
    # graph.
    file = _File(list(lines))
    tree = _parsed("".join(lines))
    if tree is None:
        return file  # a template, a notebook magic: expressions still work, variables do not
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[*targets], value=value):
                _index_assignment(file, node, targets, value)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                _index_assignment(file, node, [target], value)
            case ast.Attribute(attr="grad", ctx=ast.Load(), value=owner) if is_path(owner):
                file.grad_reads.append((node.lineno, ast.unparse(owner)))
            case ast.NamedExpr(target=target, value=value):
                file.variables[_span(value)] = target.id
            # ``x += 1`` is one instruction for both the sum and the assignment.
            case ast.AugAssign(target=target):
                # What `x[0] += 1` writes back has the place of its target.
                for span in (_span(node), *[_span(target)] * isinstance(target, ast.Subscript)):
                    file.variables[span] = _target_name(target)
                    file.statements[span] = _span(node)
            case ast.With(items=items) | ast.AsyncWith(items=items):
                last = items[-1].optional_vars or items[-1].context_expr
                file.statements[_span(node)] = (*_span(node)[:2], *_span(last)[2:])
            case ast.For(target=target, iter=iterated):
                file.variables[_span(node)] = _target_name(target)
                file.statements[_span(node)] = (*_span(node)[:2], *_span(iterated)[2:])
                file.iterated[_span(iterated)] = _span(node)
    return file


def _index_assignment(
    file: _File, statement: ast.stmt, targets: list[ast.expr], value: ast.expr
) -> None:
    names = [_target_name(target) for target in targets]
    file.variables[_span(value)] = " = ".join(names)
    for target, name in zip(targets, names, strict=True):
        if isinstance(target, ast.Subscript):
            file.variables[_span(target)] = name
            file.statements[_span(target)] = _span(statement)


def _target_name(target: ast.expr) -> str:
    text = ast.unparse(target)
    # A tuple of one is written (x,).
    return text[1:-1].removesuffix(",") if isinstance(target, ast.Tuple) else text


COMMAND = "<string>"
"""The name of what follows ``python -c``, and of what ``exec`` is given."""

_NUMBERED = re.compile(r"<ipython-input-(\d+)-[0-9a-f]+>")


def display_name(filename: str, directory: str) -> str:
    """``In[3]`` for a cell; else the file as a person in this directory would type it."""
    cell = _cell(filename)
    return cell or _relative(filename, directory)


@lru_cache(maxsize=4_096)
def _relative(filename: str, directory: str) -> str:
    below = bool(directory) and filename.startswith(directory.rstrip(os.sep) + os.sep)
    return os.path.relpath(filename, directory) if below else filename


def _cell(filename: str) -> str:
    """A cell by the number of its execution, as IPython's own tracebacks name it; "" for others."""
    numbered = _NUMBERED.fullmatch(filename)
    if numbered:
        return f"In[{numbered[1]}]"
    # No blanket `except` around code of others: a signal handler of the program may raise in it.
    ask = getattr(sys.modules.get("IPython"), "get_ipython", None)
    compiler = getattr(ask() if callable(ask) else None, "compile", None)
    told = getattr(compiler, "format_code_name", None)
    found = told(filename) if callable(told) else None
    return str(found[1]) if isinstance(found, tuple) and len(found) == 2 else ""


def with_inner(codes: Iterable[CodeType]) -> Iterator[CodeType]:
    """Code objects and those of all functions and classes inside them."""
    waiting = list(codes)
    while waiting:
        code = waiting.pop()
        yield code
        waiting += [inner for inner in code.co_consts if isinstance(inner, CodeType)]


@lru_cache(maxsize=4_096)
def names_in(expression: str) -> tuple[str, ...]:
    """The names in an expression, longest first: ``self.w`` before ``self``."""
    tree = _parsed(expression.strip())
    inside = ast.walk(tree) if tree is not None else ()
    found = {ast.unparse(node) for node in inside if isinstance(node, ast.expr) and is_path(node)}
    return tuple(sorted(found, key=lambda name: (-len(name), name)))


def is_path(node: ast.expr) -> bool:
    """Whether it is a plain path: names and attributes."""
    # Only plain paths are looked up in the user's frame: evaluating a call could change the
    # program.
    while True:
        match node:
            case ast.Name():
                return True
            case (
                ast.Attribute(value=value)
                | ast.Subscript(value=value, slice=ast.Constant() | ast.Name())
            ):
                node = value
            case _:
                return False
