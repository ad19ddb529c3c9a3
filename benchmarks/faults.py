"""Kinds of fault that ``benchmarks.injected`` puts into healthy programs, as changes of the syntax
tree.

A kind is a function that yields the places of one file where its fault fits; each place is a
function that changes the tree and marks the guilty lines.  ``inject`` makes the text of the sick
program of them, and knows where the marked lines are in it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import cast

from benchmarks.effects import (
    Effect,
    changed,
    grown,
    lost,
    nonfinite,
    partly,
    raises,
    shrunk,
    unclipped,
    unmoved,
)

_HERE = "the fault is in the next line"

Change = Callable[[], None]


@dataclass(frozen=True)
class Line:
    """A statement, where it stands, and around what."""

    body: list[ast.stmt]
    statement: ast.stmt
    function: str  # the function around it; "" at the top
    loops: int  # how many loops of this function are around it

    @property
    def at(self) -> int:
        """Its place among its neighbours, as they stand now."""
        return next(at for at, one in enumerate(self.body) if one is self.statement)

    def replace(self, *statements: str | ast.stmt) -> None:
        """Put others in its place; strings are code."""
        at = self.at
        self.body[at : at + 1] = [one for each in statements for one in _statements(each)]

    def insert_before(self, *statements: str | ast.stmt) -> None:
        """Put others before it."""
        at = self.at
        self.body[at:at] = [one for each in statements for one in _statements(each)]

    def insert_after(self, *statements: str | ast.stmt) -> None:
        """Put others behind it."""
        at = self.at + 1
        self.body[at:at] = [one for each in statements for one in _statements(each)]


def _statements(code: str | ast.stmt) -> list[ast.stmt]:
    return ast.parse(code).body if isinstance(code, str) else [code]


def marked(statement: str | ast.stmt) -> ast.stmt:
    """A statement as a guilty one: for the time being inside of a block that says so."""
    # An `if` alone in an else branch would be written as `elif`.
    block = ast.parse(f"while {_HERE!r}: pass").body[0]
    assert isinstance(block, ast.While)
    block.body = _statements(statement)
    return block


def lines(tree: ast.Module) -> list[Line]:
    """Every statement of a file, outermost first."""
    found: list[Line] = []
    waiting: list[tuple[ast.AST, str, int]] = [(tree, "", 0)]
    while waiting:
        parent, function, loops = waiting.pop()
        if isinstance(parent, ast.FunctionDef):
            function, loops = parent.name, 0
        elif isinstance(parent, ast.For | ast.While):
            loops += 1
        for name in ("body", "orelse", "finalbody"):
            body = getattr(parent, name, None)
            if isinstance(body, list):
                found += [Line(body, one, function, loops) for one in body]
                waiting += [(one, function, loops) for one in reversed(body)]
    return found


def inject(source: str, kind: Kind, number: int) -> tuple[str, set[int]]:
    """The sick program's text, and the numbers of its guilty lines.

    Args:
        source: the healthy text of the file.
        kind: the kind of fault.
        number: which of the places that ``kind.places`` yields.
    """
    tree = ast.parse(source)
    list(kind.places(tree))[number]()
    guilty: set[int] = set()
    text: list[str] = []
    inside = -1
    for line in ast.unparse(ast.fix_missing_locations(tree)).splitlines():
        depth = len(line) - len(line.lstrip())
        if line.strip() == f"while {_HERE!r}:":
            inside = depth
            continue
        if inside >= 0 and depth > inside:
            line = line[4:]
            guilty.add(len(text) + 1)
        else:
            inside = -1
        text.append(line)
    return "\n".join(text) + "\n", guilty


def plain(source: str) -> str:
    """The healthy program in the same layout."""
    return ast.unparse(ast.parse(source)) + "\n"


# ---------------------------------------------------------------------- what to look for


@dataclass(frozen=True)
class Made:
    """``name = call(...)`` in a forward pass."""

    line: Line
    name: str
    value: str

    def becomes(self, expression: str, *rest: str) -> None:
        """Another expression of the value, ``{}``, and lines behind it; the first is guilty unless
        there are more, then the last."""
        first: str | ast.stmt = f"{self.name} = {expression.format(f'({self.value})')}"
        code = [first, *(one.format(self.name) for one in rest)]
        self.line.replace(*code[:-1], marked(code[-1]))


def _made(tree: ast.Module) -> Iterator[Made]:
    for line in lines(tree):
        match line.statement:
            case ast.Assign([ast.Name(name)], ast.Call() as call) if line.function == "forward":
                if not _is_shape(call):
                    yield Made(line, name, ast.unparse(call))
            case ast.Return(ast.Call() as call) if line.function == "forward":
                if not _is_shape(call) and "self." in ast.unparse(call.func):
                    where = (line.body, line.statement, line.function, line.loops)
                    yield Made(_Returned(*where), "result", ast.unparse(call))


@dataclass(frozen=True)
class _Returned(Line):
    """A statement ``return value``: what takes its place is followed by ``return result``."""

    def replace(self, *statements: str | ast.stmt) -> None:
        """Put others in its place, and return what they made."""
        super().replace(*statements, "return result")


_SHAPES = ("view", "reshape", "size", "zeros", "ones", "arange", "range", "len", "int", "float")


def _is_shape(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ast.unparse(call.func)
    return name.startswith(_SHAPES) or name.endswith("_")


def _calls(tree: ast.Module, method: str) -> Iterator[tuple[Line, ast.Call, str]]:
    """The statements ``x.method(...)``, with the call and ``x``."""
    for line in lines(tree):
        match line.statement:
            case ast.Expr(ast.Call(ast.Attribute(owner, name)) as call) if name == method:
                yield line, call, ast.unparse(owner)


def _optimizers(tree: ast.Module) -> Iterator[tuple[Line, ast.Call, str]]:
    """The statements ``optimizer = X(model.parameters(), ...)``, with the call and the model."""
    for line in lines(tree):
        match line.statement:
            case ast.Assign(
                [ast.Name()],
                ast.Call(
                    ast.Attribute(),
                    [ast.Call(ast.Attribute(ast.Name(model), "parameters"), []), *_],
                ) as call,
            ):
                yield line, call, model


def _steps(tree: ast.Module) -> Iterator[tuple[Line, Line, str, str]]:
    """``loss.backward()`` and ``optimizer.step()`` in one block: both lines, loss, optimizer."""
    for line, call, loss in _calls(tree, "backward"):
        if call.args or call.keywords:
            continue
        for later, step, optimizer in _calls(tree, "step"):
            is_next = later.body is line.body and later.at > line.at
            if is_next and not step.args and "opt" in optimizer.lower():
                yield line, later, loss, optimizer
                break


def _losses(tree: ast.Module) -> Iterator[tuple[Line, str]]:
    """``loss.backward()`` where loss is a name: the line, the name."""
    for line, call, loss in _calls(tree, "backward"):
        if loss.isidentifier() and not call.args:
            yield line, loss


# ---------------------------------------------------------------------- the kinds


Places = Callable[[ast.Module], Iterator[Change]]


@dataclass(frozen=True)
class Kind:
    """A kind of fault.

    ``effect`` decides whether a place is one where the change is a fault at all.  It compares with
    the healthy program, or where ``right`` is given with the program that has that instead: the
    same numbers forward, but no fault.
    """

    name: str
    words: str
    places: Places
    effect: Effect
    right: Places | None = None


def _forward(expression: str, *rest: str) -> Places:
    """A kind that changes one value of a forward pass."""

    def places(tree: ast.Module) -> Iterator[Change]:
        for made in _made(tree):
            yield lambda made=made: made.becomes(expression, *rest)  # type: ignore[misc]

    return places


def _hooked(returned: str) -> Places:
    """A kind that registers a hook on one value of a forward pass; it returns this."""
    hook = f"register_hook(lambda gradient: {returned})"
    return _forward("{}", f"{{0}}.requires_grad and {{0}}.{hook}")


def _before_backward(*code: str) -> Places:
    """A kind that puts a line before ``loss.backward()``; ``{}`` is the loss."""

    def places(tree: ast.Module) -> Iterator[Change]:
        for line, loss in _losses(tree):
            yield lambda line=line, loss=loss: line.insert_before(  # type: ignore[misc]
                *(marked(one.format(loss)) for one in code)
            )

    return places


def _twice(tree: ast.Module) -> Iterator[Change]:
    for line, loss in _losses(tree):

        def change(line: Line = line, loss: str = loss) -> None:
            line.replace(marked(f"{loss}.backward()"), marked(line.statement))

        yield change


def _no_grad(tree: ast.Module) -> Iterator[Change]:
    for made in _made(tree):

        def change(made: Made = made) -> None:
            inner = ast.parse(f"with torch.no_grad():\n    {made.name} = {made.value}").body[0]
            made.line.replace(marked(inner))

        yield change


_WRONG = """
class Squashed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value):
        result = torch.tanh(value)
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx, gradient):
        return gradient * (1.01 - ctx.saved_tensors[0] ** 2)
"""


def _wrong_function(tree: ast.Module) -> Iterator[Change]:
    for made in _made(tree):

        def change(made: Made = made) -> None:
            made.becomes("Squashed.apply({})")
            after = [
                at
                for at, one in enumerate(tree.body)
                if isinstance(one, ast.Import | ast.ImportFrom)
            ]
            code = _statements(_WRONG)
            definition = cast(ast.ClassDef, code[0])
            backward = cast(ast.FunctionDef, definition.body[1])
            backward.body = [marked(backward.body[0])]
            tree.body[after[-1] + 1 : after[-1] + 1] = [*_statements("import torch"), *code]

        yield change


def _no_zeroing(tree: ast.Module) -> Iterator[Change]:
    for line, _, owner in _calls(tree, "zero_grad"):
        for backward, step, _, optimizer in _steps(tree):
            if optimizer == owner:

                def change(line: Line = line, others: tuple[Line, Line] = (backward, step)) -> None:
                    for one in others:
                        one.replace(marked(one.statement))
                    line.replace("pass")

                yield change


def _zeroed_too_early(tree: ast.Module) -> Iterator[Change]:
    for line, _, owner in _calls(tree, "zero_grad"):
        for _, step, _, optimizer in _steps(tree):
            if optimizer == owner:

                def change(line: Line = line, step: Line = step) -> None:
                    step.replace(marked(line.statement), marked(step.statement))
                    line.replace("pass")

                yield change


def _no_step(tree: ast.Module) -> Iterator[Change]:
    for backward, step, _, _ in _steps(tree):

        def change(backward: Line = backward, step: Line = step) -> None:
            backward.replace(marked(backward.statement))
            step.replace("pass")
            for line, _, _ in [*_optimizers(tree)]:
                line.replace(marked(line.statement))
            for line, _, _ in [*_calls(tree, "zero_grad")]:
                line.replace(marked(line.statement))

        yield change


def _step_first(tree: ast.Module) -> Iterator[Change]:
    for backward, step, _, _ in _steps(tree):

        def change(backward: Line = backward, step: Line = step) -> None:
            step.replace("pass")
            backward.replace(marked(step.statement), marked(backward.statement))

        yield change


def _clip(where: str) -> Places:
    def places(tree: ast.Module) -> Iterator[Change]:
        models = {model for _, _, model in _optimizers(tree)}
        for backward, step, _, _ in _steps(tree):
            for model in models if "clip_grad" not in ast.unparse(tree) else ():
                code = f"torch.nn.utils.clip_grad_norm_({model}.parameters(), 0.5)"

                def change(backward: Line = backward, step: Line = step, code: str = code) -> None:
                    if where == "after step":
                        step.insert_after(marked(code))
                    else:
                        backward.insert_before(marked(code))

                yield change

    return places


def _optimizer(arguments: str, *after: str) -> Places:
    """A kind that gives the optimizer other parameters, or changes the model behind it; ``{}`` is
    the model."""

    def places(tree: ast.Module) -> Iterator[Change]:
        for line, call, model in _optimizers(tree):

            def change(line: Line = line, call: ast.Call = call, model: str = model) -> None:
                call.args[0] = ast.parse(arguments.format(model), mode="eval").body
                line.insert_after(*(marked(one.format(model)) for one in after))
                line.replace(marked(line.statement))

            yield change

    return places


def _loss_call(name: str, code: str, *before: str) -> Places:
    """A kind that changes a call ``f(prediction, target, ...)`` in a loop or function, and puts
    lines before it; ``{0}`` and ``{1}`` are prediction and target."""

    def places(tree: ast.Module) -> Iterator[Change]:
        for line in lines(tree):
            if isinstance(line.statement, ast.Assign | ast.Return | ast.Expr | ast.AugAssign):
                for call in ast.walk(line.statement):
                    if isinstance(call, ast.Call) and ast.unparse(call.func).endswith(name):
                        if len(call.args) < 2:
                            continue

                        def change(line: Line = line, call: ast.Call = call) -> None:
                            words = [ast.unparse(one) for one in call.args[:2]]
                            new = ast.parse(code.format(*words), mode="eval").body
                            call.args[:2] = cast(ast.Tuple, new).elts
                            line.insert_before(*(marked(one.format(*words)) for one in before))
                            line.replace(marked(line.statement))

                        yield change

    return places


def _list_of_layers(tree: ast.Module) -> Iterator[Change]:
    for line in lines(tree):
        match line.statement:
            case ast.Assign([_], ast.Call(ast.Attribute(_, "ModuleList"), [argument])) as whole:

                def change(
                    line: Line = line, whole: ast.Assign = whole, argument: ast.expr = argument
                ) -> None:
                    whole.value = ast.parse(f"list({ast.unparse(argument)})", mode="eval").body
                    line.replace(marked(whole))
                    for other, _, _ in [*_optimizers(tree)]:
                        other.replace(marked(other.statement))

                yield change


def _grown(tree: ast.Module) -> Iterator[Change]:
    for line, loss in _losses(tree):
        if line.loops:

            def change(line: Line = line, loss: str = loss) -> None:
                line.insert_before(
                    marked(f"total = {loss} + globals().get('total', 0)"),
                    "globals()['total'] = total",
                )
                line.replace(marked("total.backward(retain_graph=True)"))

            yield change


def _nan_in_input(tree: ast.Module) -> Iterator[Change]:
    for line in lines(tree):
        match line.statement:
            case ast.FunctionDef("forward", ast.arguments(args=[_, ast.arg(name), *_])) as forward:

                def change(body: list[ast.stmt] = forward.body, name: str = name) -> None:
                    body.insert(0, marked(f"{name} = {name} / {name}.std().mul(0)"))

                yield change


CUT = changed(0.1)
"""A tenth of the gradient of a parameter is lost, or put in wrongly."""

KINDS: tuple[Kind, ...] = (
    Kind("detach", "a value of the forward pass is detached", _forward("{}.detach()"), lost),
    Kind(
        "detach-part",
        "the same where parameters keep a part of their gradient",
        _forward("{}.detach()"),
        partly(0.1),
    ),
    Kind("data", "`.data` of a value goes on", _forward("{}.data"), CUT),
    Kind("no-grad", "one line of the forward pass is under `no_grad`", _no_grad, CUT),
    Kind(
        "numpy",
        "a value goes through numpy",
        _forward("torch.from_numpy({}.detach().numpy())"),
        CUT,
    ),
    Kind(
        "new-tensor", "a tensor is made anew of numbers", _forward("torch.tensor({}.tolist())"), CUT
    ),
    Kind(
        "rounded",
        "a value is rounded",
        _forward("{}.round()"),
        CUT,
        right=_forward("(lambda x: x + (x.round() - x).detach())({})"),
    ),
    Kind(
        "whole-number",
        "a value is cast to whole numbers and back",
        _forward("{}.long().float()"),
        CUT,
        right=_forward("(lambda x: x + (x.long() - x).detach())({})"),
    ),
    Kind(
        "saturated",
        "tanh of numbers a thousand times too large",
        _forward("torch.tanh({} * 1e4)"),
        shrunk,
        right=_forward("torch.tanh({})"),
    ),
    Kind(
        "dead",
        "every input of a ReLU is negative",
        _forward("torch.relu({} - 1e4)"),
        shrunk,
        right=_forward("torch.relu({})"),
    ),
    Kind(
        "log-of-zero",
        "log of what a ReLU has made zero",
        _forward("torch.log(torch.relu({}))"),
        nonfinite,
    ),
    Kind(
        "root-of-zero",
        "sqrt of what a ReLU has made zero",
        _forward("torch.sqrt(torch.relu({}))"),
        nonfinite,
    ),
    Kind(
        "all-masked",
        "softmax over a row that is masked from end to end",
        _forward("torch.softmax({0} * 0 - float('inf'), -1)"),
        nonfinite,
    ),
    Kind("large-gain", "one value is multiplied by 100,000", _forward("{} * 1e5"), grown),
    Kind("small-gain", "one value is multiplied by 1e-8", _forward("{} * 1e-8"), shrunk),
    Kind(
        "edited",
        "a result that backward needs is changed in place",
        _forward("torch.tanh({})", "{}.mul_(2)"),
        raises("modified by an inplace operation"),
    ),
    Kind(
        "edited-data",
        "the same through `.data`, which torch does not notice",
        _forward("torch.tanh({})", "{}.data.mul_(2)"),
        CUT,
        right=_forward("torch.tanh({}) * 2"),
    ),
    Kind(
        "wrong-function",
        "backward of a custom Function is off by 1 % and more",
        _wrong_function,
        changed(0.005),
        right=_forward("torch.tanh({})"),
    ),
    Kind("hook", "a hook makes the gradient zero", _hooked("gradient * 0"), CUT),
    Kind(
        "hook-shape",
        "a hook returns a gradient of another shape",
        _hooked("gradient[..., :1]"),
        raises("has changed the size"),
    ),
    Kind(
        "hook-raises",
        "a hook raises an exception",
        _hooked("gradient['norm']"),
        raises("gradient['norm']"),
    ),
    Kind("not-zeroed", "`zero_grad` is left out", _no_zeroing, CUT),
    Kind("zeroed-early", "`zero_grad` between backward and step", _zeroed_too_early, unmoved),
    Kind("no-step", "`step` is left out", _no_step, unmoved),
    Kind("step-first", "`step` before backward", _step_first, unmoved),
    Kind("clip-late", "clipping after the step", _clip("after step"), unclipped(0.5)),
    Kind("clip-early", "clipping before backward", _clip("before backward"), unclipped(0.5)),
    Kind(
        "some-left-out",
        "the optimizer gets some parameters only",
        _optimizer("list({}.parameters())[:-2]"),
        unmoved,
    ),
    Kind(
        "copy-optimized",
        "the optimizer gets the parameters of a copy",
        _optimizer("__import__('copy').deepcopy({}).parameters()"),
        unmoved,
    ),
    Kind(
        "replaced",
        "a layer is replaced after the optimizer was made",
        _optimizer(
            "{}.parameters()",
            "for name, child in list({0}.named_children())[:1]:\n"
            "    setattr({0}, name, __import__('copy').deepcopy(child))",
        ),
        unmoved,
    ),
    Kind(
        "loss-from-number",
        "the loss is made anew of its number",
        _before_backward("{0} = torch.tensor({0}.item(), requires_grad=True)"),
        lost,
    ),
    Kind(
        "loss-detached",
        "the loss is detached, and told to require a gradient",
        _before_backward("{0} = {0}.detach().requires_grad_()"),
        lost,
    ),
    Kind(
        "underflow",
        "the loss is scaled so that gradients vanish",
        _before_backward("{0} = {0} * 1e-42"),
        shrunk,
    ),
    Kind(
        "nan-input",
        "what goes into a model is divided by a standard deviation of zero",
        _nan_in_input,
        nonfinite,
    ),
    Kind("grown", "the loss is added to that of earlier steps", _grown, CUT),
    Kind(
        "broadcast",
        "mse of a column and a row",
        _loss_call("mse_loss", "({0}, column)", "column = {1}.unsqueeze(-1)"),
        CUT,
    ),
    Kind(
        "two-softmax",
        "softmax before `cross_entropy`",
        _loss_call("cross_entropy", "({0}.softmax(-1), {1})"),
        CUT,
    ),
    Kind("list-of-layers", "a python list instead of a ModuleList", _list_of_layers, unmoved),
    Kind(
        "twice",
        "backward a second time",
        _twice,
        raises("backward through the graph a second time"),
    ),
)
